//! Web pages: the live page of a proxy, and the page of a config server for all its proxies. The files are in the binary, and a
//! page asks no machine but its own server.

/// `Content-Security-Policy`: only the files of a page run and are shown, and it asks only its server.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// File of a page.
#[derive(Debug)]
pub struct Asset {
    /// Path of its URL.
    pub path: &'static str,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Content.
    pub text: &'static str,
}

macro_rules! assets {
    ($($constant:ident $name:literal $kind:ident,)+) => {
        $(static $constant: Asset = Asset {
            path: concat!("/ui/", $name),
            content_type: $kind,
            text: include_str!(concat!("../ui/", $name)),
        };)+
        static ASSETS: &[&Asset] = &[$(&$constant,)+];
    };
}

assets! {
    CHANGES "changes.js" SCRIPT,
    DOM "dom.js" SCRIPT,
    EXPLAIN "explain.js" SCRIPT,
    FINDINGS "findings.js" SCRIPT,
    FLEET_PAGE "fleet.html" HTML,
    FLEET "fleet.js" SCRIPT,
    LIVE_PAGE "live.html" HTML,
    LIVE "live.js" SCRIPT,
    SERVICE "service.js" SCRIPT,
    STYLE "style.css" CSS,
    TABLE "table.js" SCRIPT,
    TAP "tap.js" SCRIPT,
    TOPOLOGY "topology.js" SCRIPT,
}

/// Returns the live page of a proxy.
pub fn live_page() -> &'static Asset {
    &LIVE_PAGE
}

/// Returns the page of a config server.
pub fn fleet_page() -> &'static Asset {
    &FLEET_PAGE
}

/// Returns the file with a path.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().copied().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Maximum size of the pages with all their files, compressed.
    const BYTES_MAX: usize = 150 << 10;

    #[test]
    fn pages_stay_small_and_ask_no_other_machine() {
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
    fn every_file_and_every_import_is_embedded() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
        let files = std::fs::read_dir(directory).unwrap();
        let mut files: Vec<String> = files
            .map(|file| format!("/ui/{}", file.unwrap().file_name().to_str().unwrap()))
            .collect();
        files.sort();
        let embedded: Vec<_> = ASSETS.iter().map(|asset| asset.path).collect();
        assert_eq!(embedded, files);
        let imports = ASSETS
            .iter()
            .flat_map(|asset| asset.text.split("from './").skip(1));
        for import in imports {
            let name = import.split('\'').next().unwrap();
            assert!(find(&format!("/ui/{name}")).is_some(), "{name}");
        }
        for page in [live_page(), fleet_page()] {
            let linked = page.text.split("=\"/ui/").skip(1);
            for name in linked.map(|link| link.split('"').next().unwrap()) {
                assert!(find(&format!("/ui/{name}")).is_some(), "{name}");
            }
        }
    }
}
