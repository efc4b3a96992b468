//! Commands about the CA, for people: on a running server as JSON, or directly where its keys are kept.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::authorities::Authorities;
use super::join::{self, JoinToken, NewJoinToken};
use super::keep::Keep;
use super::values::now;

/// Path of the commands on a running server.
pub const PATH: &str = "/strait/identity";

/// Command about the CA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Create a join token; the answer has its text.
    CreateToken(NewJoinToken),
    /// List the join tokens.
    ListTokens,
    /// Revoke a join token.
    RevokeToken(String),
    /// Start to replace the root.
    Rotate,
    /// Show roots and rotation.
    Status,
}

/// Runs a command where the keys of a CA are kept.
///
/// # Errors
/// If the place cannot be read or written, or if the command does not apply; the text is for users.
pub async fn run(keep: &Keep, command: &Command) -> Result<Value, String> {
    let store = match keep {
        Keep::Secret(_) => Err("join tokens are for a server with a data directory: workloads of a cluster have tokens of their service accounts".to_owned()),
        Keep::Store(store) => Ok(store),
    };
    match command {
        Command::CreateToken(new) => Ok(json!({"token": join::create(&**store?, new).await?})),
        Command::ListTokens => {
            let tokens = join::list(&**store?).await?;
            Ok(tokens.iter().map(JoinToken::shown).collect())
        }
        Command::RevokeToken(name) => {
            join::revoke(&**store?, name).await?;
            Ok(json!({}))
        }
        Command::Rotate => {
            let rotated = keep.change(|known| match known {
                Some(known) => known.rotated(now()).map(Some),
                None => Ok(None),
            });
            status(rotated.await?.as_ref())
        }
        Command::Status => status(keep.change(|_| Ok(None)).await?.as_ref()),
    }
}

fn status(keys: Option<&Authorities>) -> Result<Value, String> {
    let keys = keys.ok_or(
        "there are no keys of a CA yet, or they are files of the operator: `strait control --issue-identities` makes them",
    )?;
    Ok(keys.status())
}
