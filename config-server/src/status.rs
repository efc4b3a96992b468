//! Errors of the API as Kubernetes `Status` objects with code, reason and details.

use std::fmt::Display;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::resources::Resource;
use crate::store::StoreError;

/// Cause of an error in one field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Reason in CamelCase, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// Description of the error.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

impl Cause {
    /// Returns a cause whose reason is derived from the start of its message, which follows Kubernetes.
    pub fn of_field(field: &str, message: impl Into<String>) -> Cause {
        let message = message.into();
        let reasons = [
            ("Required value", "FieldValueRequired"),
            ("Duplicate value", "FieldValueDuplicate"),
            ("Unsupported value", "FieldValueNotSupported"),
            ("Forbidden", "FieldValueForbidden"),
            ("Too many", "FieldValueTooMany"),
            ("Too long", "FieldValueTooLong"),
        ];
        let known = reasons.iter().find(|(head, _)| message.starts_with(head));
        Cause {
            reason: known.map_or("FieldValueInvalid", |(_, reason)| reason),
            message,
            field: field.to_owned(),
        }
    }

    /// Formats the cause as one line.
    pub fn text(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.field, self.message)
        }
    }
}

/// Failed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// HTTP status code.
    pub code: StatusCode,
    /// Reason in CamelCase.
    pub reason: &'static str,
    /// Description of the error.
    pub message: String,
    /// Details of the `Status`, such as the resource and the causes.
    pub details: Box<Map<String, Value>>,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// Token that continues an expired list at the latest revision.
    pub continue_token: Option<Box<str>>,
}

impl Failure {
    /// Returns a failure without details.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            code,
            reason,
            message: message.into(),
            details: Box::default(),
            retry_after: None,
            continue_token: None,
        }
    }

    /// Returns 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Returns 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Failure {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Failure::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    /// Returns 404 for a path.
    pub fn unknown_path() -> Failure {
        let message = "the server could not find the requested resource";
        Failure::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// Returns 405 for a path that does not support the method.
    pub fn method_not_allowed() -> Failure {
        let message = "the server does not allow this method on the requested resource";
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// Returns 409: the object already exists.
    pub fn already_exists(resource: &Resource, name: &str) -> Failure {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Failure::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    /// Returns 409: a precondition of the request does not match the object.
    pub fn conflict(resource: &Resource, name: &str, why: impl Display) -> Failure {
        let qualified = resource.qualified();
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {why}");
        Failure::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// Returns 409: the object has been modified since it was read.
    pub fn modified(resource: &Resource, name: &str) -> Failure {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Failure::conflict(resource, name, why)
    }

    /// Returns 422 for an object.
    pub fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Failure {
        Failure::invalid_named(&resource.qualified_kind(), name, causes).about_kind(resource, name)
    }

    /// Returns 422 for a patch that cannot be parsed. After a 400, `kubectl edit` would not reopen the editor.
    pub fn invalid_patch(self, resource: &Resource, name: &str) -> Failure {
        let message = format!("Invalid value: {}", self.message);
        Failure::invalid(resource, name, vec![Cause::of_field("patch", message)])
    }

    /// Returns 422 for options, such as `ListOptions.meta.k8s.io`.
    pub fn invalid_options(options: &str, cause: Cause) -> Failure {
        Failure::invalid_named(&format!("{options}.meta.k8s.io"), "", vec![cause])
    }

    fn invalid_named(kind: &str, name: &str, causes: Vec<Cause>) -> Failure {
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        let list = match &*texts {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{kind} \"{name}\" is invalid: {list}");
        let mut failure = Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        failure.causes(&causes);
        failure
    }

    /// Returns 410: the requested revision is older than the history.
    pub fn expired(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::GONE, "Expired", message)
    }

    /// Returns 500.
    pub fn internal(why: impl Display) -> Failure {
        let message = format!("Internal error occurred: {why}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Returns 403.
    pub fn forbidden(resource: &Resource, name: &str, why: impl Display) -> Failure {
        let named = if name.is_empty() {
            resource.qualified()
        } else {
            format!("{} \"{name}\"", resource.qualified())
        };
        let message = format!("{named} is forbidden: {why}");
        Failure::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    /// Sets `Retry-After`.
    fn again_after(self, seconds: u32) -> Failure {
        Failure {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Adds details that name an object by its plural.
    pub fn about(mut self, resource: &Resource, name: &str) -> Failure {
        self.name_it(resource, name, resource.api.plural);
        self
    }

    fn about_kind(mut self, resource: &Resource, name: &str) -> Failure {
        self.name_it(resource, name, resource.kind);
        self
    }

    fn name_it(&mut self, resource: &Resource, name: &str, kind: &str) {
        if !name.is_empty() {
            self.details.insert("name".to_owned(), name.into());
        }
        if !resource.group.is_empty() {
            self.details
                .insert("group".to_owned(), resource.group.into());
        }
        self.details.insert("kind".to_owned(), kind.into());
    }

    /// Adds causes to the details.
    pub fn causes(&mut self, causes: &[Cause]) {
        let causes = causes.iter().map(
            |cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}),
        );
        self.details.insert("causes".to_owned(), causes.collect());
    }

    /// Returns the failure as a `Status` object.
    pub fn to_json(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), (**token).into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "reason": self.reason,
        });
        let mut details = self.details.clone();
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        if !details.is_empty() {
            status["details"] = Value::Object(*details);
        }
        status["code"] = self.code.as_u16().into();
        status
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Compacted => {
                Failure::expired("The resourceVersion for the provided list is too old.")
            }
            StoreError::Future { current } => {
                let message = format!("Timeout: Too large resource version, current: {current}");
                Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).again_after(1)
            }
            StoreError::Full(why) => {
                let code = StatusCode::INSUFFICIENT_STORAGE;
                Failure::new(code, "InsufficientStorage", why).again_after(1)
            }
            // A retry may reach another etcd member, or a disk that has recovered.
            StoreError::Failed(why) => {
                let code = StatusCode::SERVICE_UNAVAILABLE;
                Failure::new(code, "ServiceUnavailable", why).again_after(1)
            }
        }
    }
}
