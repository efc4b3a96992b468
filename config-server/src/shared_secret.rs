//! Secrets of an API server that replicas share: made by the first one, changed by the one whose write wins.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};

/// Maximum number of writes of other replicas between a reading and its change.
const CONFLICTS_MAX: usize = 5;

/// Content of a Secret: texts by field.
pub(crate) trait Content: Sized {
    /// Type of the Secret.
    const TYPE: &'static str;

    /// Returns the fields with their texts.
    fn fields(&self) -> Result<Vec<(&'static str, String)>, String>;

    /// Reads the content from the text of each field.
    ///
    /// # Errors
    /// If a field is missing or damaged.
    fn read(field: impl Fn(&str) -> Result<String, String>) -> Result<Self, String>;
}

/// Reads a Secret, and writes what takes its place. `change` gets `None` if there is no Secret, and returns `None` if
/// nothing changes. Returns the content that counts then.
///
/// # Errors
/// If the API server refuses, or the content is damaged.
pub(crate) async fn change<T: Content>(
    secrets: &Api<Secret>,
    name: &str,
    change: impl Fn(Option<&T>) -> Result<Option<T>, String>,
) -> Result<Option<T>, String> {
    for _ in 0..CONFLICTS_MAX {
        let found = secrets.get_opt(name).await;
        let found = found.map_err(|error| error.to_string())?;
        let known = found.as_ref().map(content::<T>).transpose()?;
        let Some(new) = change(known.as_ref())? else {
            return Ok(known);
        };
        let version = found.and_then(|found| found.metadata.resource_version);
        let is_new = version.is_none();
        let (params, secret) = (PostParams::default(), secret(name, &new, version)?);
        let written = match is_new {
            true => secrets.create(&params, &secret).await,
            false => secrets.replace(name, &params, &secret).await,
        };
        match written {
            Ok(_) => return Ok(Some(new)),
            // another replica was faster: what it wrote is read next
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("other replicas change it as well".to_owned())
}

fn content<T: Content>(secret: &Secret) -> Result<T, String> {
    T::read(|field| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(field));
        let text = bytes.and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        text.ok_or_else(|| {
            format!("the Secret has no text `{field}`; delete it, and it is made again")
        })
    })
}

fn secret<T: Content>(
    name: &str,
    content: &T,
    resource_version: Option<String>,
) -> Result<Secret, String> {
    let data = content.fields()?.into_iter();
    let data = data.map(|(field, text)| (field.to_owned(), ByteString(text.into_bytes())));
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(
                "app.kubernetes.io/part-of".to_owned(),
                "strait".to_owned(),
            )])),
            resource_version,
            ..ObjectMeta::default()
        },
        type_: Some(T::TYPE.to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    })
}
