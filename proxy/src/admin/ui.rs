//! The live page and its parts, which are in the binary. The page asks nothing of any other machine.

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};

use super::reply::Reply;

/// Only the page's own files run and are shown, and it asks only the proxy.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal $kind:ident,)+) => {
        const ASSETS: &[Asset] = &[$(Asset {
            path: concat!("/ui/", $name),
            content_type: $kind,
            text: include_str!(concat!("ui/", $name)),
        },)+];
    };
}

assets! {
    "app.js" SCRIPT,
    "changes.js" SCRIPT,
    "dom.js" SCRIPT,
    "explain.js" SCRIPT,
    "findings.js" SCRIPT,
    "index.html" HTML,
    "service.js" SCRIPT,
    "style.css" CSS,
    "table.js" SCRIPT,
    "tap.js" SCRIPT,
    "topology.js" SCRIPT,
}

/// The page.
pub(super) fn page() -> Reply {
    let page = ASSETS.iter().find(|asset| asset.content_type == HTML);
    page.map_or_else(|| Reply::html(String::new()), reply)
}

/// A file of the page, by its path.
pub(super) fn find(path: &str) -> Option<Reply> {
    ASSETS.iter().find(|asset| asset.path == path).map(reply)
}

fn reply(asset: &Asset) -> Reply {
    Reply::new(StatusCode::OK, asset.content_type, asset.text.into())
        .with_header(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
        .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Maximum size of the page with all its files, compressed.
    const BYTES_MAX: usize = 150 << 10;

    #[test]
    fn page_stays_small_and_asks_no_other_machine() {
        let mut all = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for asset in ASSETS {
            all.write_all(asset.text.as_bytes()).unwrap();
            let urls = asset.text.matches("://").count();
            // a name space, an example in a field, and the URL of a request that is shown
            let known = [
                "://www.w3.org/2000/svg",
                "://shop.example/cart",
                "://${request.host}",
            ];
            let known = known.iter().map(|one| asset.text.matches(one).count());
            assert_eq!(urls, known.sum::<usize>(), "{}", asset.path);
            assert!(!asset.text.contains("innerHTML"), "{}", asset.path);
        }
        assert!(all.finish().unwrap().len() < BYTES_MAX);
    }

    #[test]
    fn every_file_of_the_page_is_embedded() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/ui");
        let files = std::fs::read_dir(directory).unwrap();
        let mut files: Vec<String> = files
            .map(|file| format!("/ui/{}", file.unwrap().file_name().to_str().unwrap()))
            .collect();
        files.sort();
        assert_eq!(
            ASSETS.iter().map(|asset| asset.path).collect::<Vec<_>>(),
            files
        );
        let imports = ASSETS
            .iter()
            .flat_map(|asset| asset.text.split("from './").skip(1));
        for import in imports {
            let name = import.split('\'').next().unwrap();
            assert!(find(&format!("/ui/{name}")).is_some(), "{name}");
        }
    }
}
