//! Explanation by a running proxy: one GET to `/explain` of its admin server.

use super::ExplainArgs;
use crate::command::admin_client::{encode, get};
use crate::explain::Explanation;

/// Returns the explanation of the proxy whose admin server is at `admin`: `HOST:PORT`, with or without `http://`.
pub(super) fn ask(admin: &str, args: &ExplainArgs) -> Result<Explanation, String> {
    let (status, body) =
        get(admin, &target(args)).map_err(|error| format!("--admin {admin}: {error}"))?;
    if status != 200 {
        let first = body.lines().next().unwrap_or_default();
        return Err(format!("--admin {admin}: answered {status}: {first}"));
    }
    serde_json::from_str(&body)
        .map_err(|error| format!("--admin {admin}: the answer cannot be read: {error}"))
}

fn target(args: &ExplainArgs) -> String {
    let mut target = "/explain?format=json".to_owned();
    let mut add = |name: &str, value: &str| {
        target.push('&');
        target.push_str(name);
        target.push('=');
        encode(value, &mut target);
    };
    add("method", args.method());
    add("url", args.url());
    for header in &args.headers {
        add("header", header);
    }
    if let Some(client) = &args.client {
        add("client", client);
    }
    for (name, value) in [("identity", &args.client_identity), ("jwt", &args.jwt)] {
        if let Some(value) = value {
            add(name, value);
        }
    }
    if let Some(listener) = &args.listener {
        add("listener", listener);
    }
    target
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use clap::Parser;

    use super::*;
    use crate::compile::Survey;
    use crate::explain::{Question, explain};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        explain: ExplainArgs,
    }

    /// Responds to one connection with `status` and `body`; returns the request.
    fn serve(status: &'static str, body: String) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                asked.push(byte[0]);
            }
            write!(stream, "HTTP/1.1 {status}\r\n\r\n{body}").unwrap();
            String::from_utf8(asked).unwrap()
        });
        (address, thread)
    }

    fn args(more: &[&str]) -> ExplainArgs {
        let fixed = ["explain", "--admin", "x"];
        Line::try_parse_from(fixed.iter().chain(more))
            .unwrap()
            .explain
    }

    #[test]
    fn explain_request_is_encoded_and_its_answer_decoded() {
        let question = Question::parse("GET", "http://a.com/x?y=1&z").unwrap();
        let (resources, identity) = Default::default();
        let survey = Survey::new(&resources, &identity);
        let answer = explain(&question, &Default::default(), &Default::default(), &survey);
        let (address, thread) = serve("200 OK", serde_json::to_string(&answer).unwrap());
        let args = args(&[
            "GET",
            "http://a.com/x?y=1&z",
            "-H",
            "a: b c",
            "--listener",
            "80",
        ]);
        let got = ask(&format!("http://{address}/"), &args).unwrap();
        assert_eq!(got, answer);
        let asked = thread.join().unwrap();
        let line = asked.lines().next().unwrap();
        assert_eq!(
            line,
            "GET /explain?format=json&method=GET&url=http%3A%2F%2Fa.com%2Fx%3Fy%3D1%26z&header=a%3A%20b%20c\
             &listener=80 HTTP/1.1"
        );
    }

    #[test]
    fn connection_failures_name_the_address() {
        let args = args(&["GET", "/"]);
        let (address, thread) = serve("400 Bad Request", "the query has no url\nmore".to_owned());
        let error = ask(&address, &args).unwrap_err();
        assert_eq!(
            error,
            format!("--admin {address}: answered 400: the query has no url")
        );
        thread.join().unwrap();
        assert!(ask("nonsense", &args).is_err());
    }
}
