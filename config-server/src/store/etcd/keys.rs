//! Layout of keys in etcd: all are below one prefix, so that an etcd cluster can hold the state of several servers.

use bytes::Bytes;

/// Keys below a prefix.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// Object with this store key.
    Object(&'a str),
    /// Token of this name.
    Token(&'a str),
    /// Any other key.
    Other,
}

impl Keys {
    /// Returns the keys below a prefix.
    pub(super) fn below(prefix: &str) -> Keys {
        Keys {
            prefix: prefix.trim_end_matches('/').to_owned(),
        }
    }

    /// Returns the prefix of all keys.
    pub(super) fn all(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// Returns the key of an object, or the prefix of several.
    pub(super) fn object(&self, key: &str) -> String {
        format!("{}/objects{key}", self.prefix)
    }

    /// Returns the key of a token.
    pub(super) fn token(&self, name: &str) -> String {
        format!("{}/tokens/{name}", self.prefix)
    }

    /// Returns the key of the CA that all replicas share.
    pub(super) fn authority(&self) -> String {
        format!("{}/ca", self.prefix)
    }

    /// Returns the key of a chunk of proxy reports, which is outside the prefix of the watch.
    pub(super) fn report(&self, name: &str) -> String {
        format!("{}-reports/{name}", self.prefix)
    }

    /// Returns the key of the leader.
    pub(super) fn leader(&self) -> String {
        format!("{}/leader", self.prefix)
    }

    /// Returns the key that holds the name of a backup while it is being restored.
    pub(super) fn restoring(&self) -> String {
        format!("{}/restoring", self.prefix)
    }

    /// Returns the key of the offset that is added to the revisions of etcd.
    pub(super) fn base(&self) -> String {
        format!("{}/base", self.prefix)
    }

    /// Parses a key.
    pub(super) fn place<'a>(&self, key: &'a [u8]) -> Place<'a> {
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

/// Returns the first key after all keys with `prefix`.
pub(super) fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end.into();
        }
    }
    // A zero byte means all keys in the etcd API.
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
