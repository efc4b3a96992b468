//! Users of a server by bearer token: its own tokens, or those of an API server.

use std::sync::Arc;

use super::reviews::Reviews;
use super::tokens::{Token, Tokens};
use super::{Guard, User};
use crate::status::Failure;

/// Users of a server by bearer token.
#[derive(Clone, Debug)]
pub enum Users {
    /// Tokens of the server.
    Tokens(Arc<Tokens>),
    /// Tokens of service accounts, which an API server reviews.
    Reviews(Arc<Reviews>),
}

impl Users {
    /// Returns the user of a token; `None` if the token is not valid. No other server is asked without `asks`.
    ///
    /// # Errors
    /// 503 if another server has to be asked and does not answer.
    pub async fn user(&self, token: &str, asks: bool) -> Result<Option<User>, Failure> {
        match self {
            Users::Tokens(tokens) => Ok(tokens.user(token)),
            Users::Reviews(reviews) => Ok(reviews.account(token, asks).await?.map(User::from)),
        }
    }

    /// Returns the guard that ends a watch or an xDS stream once its token is no longer valid.
    pub fn guard(&self, token: String, user: &User) -> Guard {
        match self {
            Users::Tokens(tokens) => {
                let (tokens, user) = (Arc::clone(tokens), user.clone());
                Guard::new(move || tokens.user(&token).as_ref() == Some(&user))
            }
            Users::Reviews(_) => Reviews::guard(&token),
        }
    }

    /// Returns the server's own tokens.
    pub fn all(&self) -> Vec<Token> {
        match self {
            Users::Tokens(tokens) => tokens.all(),
            Users::Reviews(_) => Vec::new(),
        }
    }
}
