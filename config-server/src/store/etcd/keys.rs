//! Where things are in etcd: below one prefix, so that an etcd can hold more than one server's state.

use bytes::Bytes;

/// The keys below a prefix.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: String,
}

/// What a key is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The object with that key of the store.
    Object(&'a str),
    /// The token of that name.
    Token(&'a str),
    /// Anything else.
    Other,
}

impl Keys {
    /// The keys below that prefix.
    pub fn below(prefix: &str) -> Keys {
        Keys {
            prefix: prefix.trim_end_matches('/').to_owned(),
        }
    }

    /// The beginning of all keys.
    pub fn all(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// Of an object, or the beginning of the keys of several.
    pub fn object(&self, key: &str) -> String {
        format!("{}/objects{key}", self.prefix)
    }

    /// Of a token.
    pub fn token(&self, name: &str) -> String {
        format!("{}/tokens/{name}", self.prefix)
    }

    /// Of the CA that all replicas share.
    pub fn authority(&self) -> String {
        format!("{}/ca", self.prefix)
    }

    /// Of reports of proxies, which are beside all other keys: the watch of etcd does not bring them.
    pub fn report(&self, name: &str) -> String {
        format!("{}-reports/{name}", self.prefix)
    }

    /// Of the replica that leads.
    pub fn leader(&self) -> String {
        format!("{}/leader", self.prefix)
    }

    /// The key of the name of a backup, while it is being restored.
    pub fn restoring(&self) -> String {
        format!("{}/restoring", self.prefix)
    }

    /// Of the number that is added to the revisions of etcd.
    pub fn base(&self) -> String {
        format!("{}/base", self.prefix)
    }

    /// What a key is about.
    pub fn place<'a>(&self, key: &'a [u8]) -> Place<'a> {
        let key = std::str::from_utf8(key).unwrap_or("");
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return Place::Other;
        };
        if let Some(object) = rest.strip_prefix("/objects") {
            return Place::Object(object);
        }
        match rest.strip_prefix("/tokens/") {
            Some(name) => Place::Token(name),
            None => Place::Other,
        }
    }
}

/// The first key after all that begin with `prefix`.
pub fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end.into();
        }
    }
    // All keys: etcd writes that as a zero byte.
    Bytes::from_static(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back_to_what_they_are_about() {
        let keys = Keys::below("/strait/");
        let object = keys.object("/core/services/ns/web");
        assert_eq!(
            keys.place(object.as_bytes()),
            Place::Object("/core/services/ns/web")
        );
        assert_eq!(keys.place(keys.token("ci").as_bytes()), Place::Token("ci"));
        assert_eq!(keys.place(keys.leader().as_bytes()), Place::Other);
        assert_eq!(keys.place(b"/other/objects/x"), Place::Other);
        assert_eq!(&end_of("/a/")[..], b"/a0");
    }
}
