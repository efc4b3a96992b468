//! `/explain`: how the applied configuration would route a request. Sends no request.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use crate::explain::Question;
use crate::explain::text::{self, Detail};

const USAGE: &str = "\
/explain?url=http://shop.example/cart   why this request goes where it goes
  &method=POST                          default GET
  &header=Name:value                    may be repeated
  &client=192.0.2.7                     address of the client; for hash keys
  &listener=8080                        port, or IP:PORT; default: by the URL
  &all                                  every rule and every condition
  &format=json                          for programs
";

/// Renders the page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    if query == Query::default() {
        return Reply::text(StatusCode::OK, USAGE);
    }
    let question = match question(query) {
        Ok(question) => question,
        Err(error) => return Reply::text(StatusCode::BAD_REQUEST, format!("{error}\n\n{USAGE}")),
    };
    let answer = (state.explain)(&question);
    if query.wants_json() {
        return Reply::json(&answer);
    }
    let detail = match query.value("all") {
        Some(_) => Detail::All,
        None => Detail::Brief,
    };
    Reply::text(StatusCode::OK, text::render(&answer, detail))
}

fn question(query: Query<'_>) -> Result<Question, String> {
    let url = query.value("url").ok_or("the query has no url")?;
    let method = query.value("method");
    let mut question = Question::parse(method.as_deref().unwrap_or("GET"), &url)?;
    for header in query.values("header") {
        question.header(&header)?;
    }
    if let Some(client) = query.value("client") {
        question.by_client(&client)?;
    }
    if let Some(identity) = query.value("identity") {
        question.with_identity(&identity)?;
    }
    if let Some(claims) = query.value("jwt") {
        question.with_claims(&claims)?;
    }
    if let Some(listener) = query.value("listener") {
        question.at_listener(&listener)?;
    }
    Ok(question)
}
