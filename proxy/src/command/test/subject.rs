//! Requests and connections of a test, as questions to `explain`.

use config_loader::{Location, TestConnection, TestRequest, TestSubject};

use crate::explain::{Explanation, Question};

/// Mistake in what a test asks, with its location.
pub(super) type Mistake = (Location, String);

/// Returns the answers to all questions of a subject; several requests have the values that differ, from `1` on.
pub(super) fn answers(
    subject: &TestSubject,
    ask: impl Fn(&Question) -> Explanation,
) -> Result<Vec<Explanation>, Mistake> {
    match subject {
        TestSubject::Request(request) => Ok(vec![ask(&question(request, None)?)]),
        TestSubject::Requests {
            count,
            vary,
            request,
        } => (1..=*count)
            .map(|number| {
                let line = format!("{vary}: {number}");
                Ok(ask(&question(request, Some(&line))?))
            })
            .collect(),
        TestSubject::Connection(connection) => {
            let answer = ask(&connected(connection, "CONNECT")?);
            // a server that ends TLS and speaks HTTP takes requests, not tunnels
            let answer = match answer.virtual_host.is_some() || answer.rules.is_empty() {
                true if connection.sni.is_some() => {
                    let of_http = ask(&connected(connection, "GET")?);
                    match of_http.virtual_host.is_some() {
                        true => of_http,
                        false => answer,
                    }
                }
                _ => answer,
            };
            Ok(vec![answer])
        }
    }
}

fn question(request: &TestRequest, varied: Option<&str>) -> Result<Question, Mistake> {
    let wrong = |field: &str| {
        let field = field.to_owned();
        move |error: String| (request.location.clone(), format!("{field}: {error}"))
    };
    let question = Question::parse(&request.method, &request.url);
    let mut question = question.map_err(wrong("url"))?;
    for (name, value) in &request.headers {
        let line = format!("{name}: {value}");
        question.header(&line).map_err(wrong("headers"))?;
    }
    if let Some(line) = varied {
        question.header(line).map_err(wrong("vary"))?;
    }
    if let Some(claims) = &request.claims {
        question.with_claims(claims).map_err(wrong("claims"))?;
    }
    if let Some(listener) = &request.listener {
        question.at_listener(listener).map_err(wrong("listener"))?;
    }
    let peer = (request.client.as_deref(), request.identity.as_deref());
    of_peer(&mut question, peer, &request.location)?;
    Ok(question)
}

fn connected(connection: &TestConnection, method: &str) -> Result<Question, Mistake> {
    let port = connection.port;
    let url = match (&connection.sni, &connection.address) {
        (Some(name), _) if method == "GET" => format!("https://{name}:{port}/"),
        (Some(name), _) => format!("tls://{name}:{port}"),
        (None, address) => format!("tcp://{}:{port}", address.as_deref().unwrap_or_default()),
    };
    let question = Question::parse(method, &url);
    let mut question = question.map_err(|error| (connection.location.clone(), error))?;
    let peer = (connection.client.as_deref(), connection.identity.as_deref());
    of_peer(&mut question, peer, &connection.location)?;
    Ok(question)
}

fn of_peer(
    question: &mut Question,
    (client, identity): (Option<&str>, Option<&str>),
    location: &Location,
) -> Result<(), Mistake> {
    let wrong = |error: String| (location.clone(), error);
    if let Some(client) = client {
        question.by_client(client).map_err(wrong)?;
    }
    if let Some(identity) = identity {
        question.with_identity(identity).map_err(wrong)?;
    }
    Ok(())
}
