//! The class of an error of Lance, of a store or of the system.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use crate::error::Class;

/// The class of the first error in the chain that says something definite. The
/// outermost variants of Lance often only wrap ("LanceError(IO): ...").
pub fn classify(error: &(dyn StdError + 'static)) -> Class {
    let mut fallback = None;
    let mut current = Some(error);
    while let Some(error) = current {
        match of_one(error) {
            Verdict::Definite(class) => return class,
            Verdict::Perhaps(class) => fallback = Some(class),
            Verdict::Silent => {}
        }
        current = inner(error);
    }
    fallback.unwrap_or(Class::Internal)
}

enum Verdict {
    Definite(Class),
    /// Holds unless an inner error knows better.
    Perhaps(Class),
    Silent,
}

use Verdict::{Definite, Perhaps, Silent};

fn of_one(error: &(dyn StdError + 'static)) -> Verdict {
    if let Some(error) = error.downcast_ref::<lance::Error>() {
        return of_lance(error);
    }
    if let Some(error) = error.downcast_ref::<object_store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_io(error);
    }
    if error.is::<tokio::time::error::Elapsed>() {
        return Definite(Class::Timeout);
    }
    if error.is::<prost::DecodeError>() {
        return Definite(Class::Corrupt);
    }
    if error.is::<prost::UnknownEnumValue>() {
        return Definite(Class::Unsupported);
    }
    if error.is::<lance_core::error::CommitStatusUnknownError>() {
        return Definite(Class::Unreachable);
    }
    of_text(&error.to_string())
}

/// `io::Error::source` skips the error it was made from, and a shared error of
/// Lance shows the source of what it wraps: go one step at a time instead.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        return io.get_ref().map(|inner| inner as &(dyn StdError + 'static));
    }
    if let Some(lance::Error::Shared { source }) = error.downcast_ref::<lance::Error>() {
        return Some(source.as_ref());
    }
    if let Some(lance::Error::External { source }) = error.downcast_ref::<lance::Error>() {
        return Some(source.as_ref());
    }
    error.source()
}

fn of_lance(error: &lance::Error) -> Verdict {
    use lance::Error as E;
    match error {
        E::InvalidInput { .. } | E::InvalidRef { .. } | E::InvalidTableLocation { .. } => {
            Perhaps(Class::Invalid)
        }
        E::SchemaMismatch { .. } | E::FieldNotFound { .. } | E::Schema { .. } => {
            Perhaps(Class::Invalid)
        }
        E::DatasetAlreadyExists { .. } => Definite(Class::Exists),
        // The source tells "not there" from "the store does not answer".
        E::DatasetNotFound { .. } => Perhaps(Class::Gone),
        E::NotFound { .. } | E::RefNotFound { .. } | E::VersionNotFound { .. } => {
            Definite(Class::Gone)
        }
        E::CorruptFile { .. } => Perhaps(Class::Corrupt),
        E::NotSupported { .. } | E::VersionConflict { .. } => Definite(Class::Unsupported),
        E::CommitConflict { .. }
        | E::IncompatibleTransaction { .. }
        | E::RetryableCommitConflict { .. }
        | E::TooMuchWriteContention { .. }
        | E::RefConflict { .. }
        | E::Fenced { .. } => Definite(Class::Conflict),
        E::Timeout { .. } => Definite(Class::Timeout),
        E::Backpressure { .. } => Definite(Class::Unreachable),
        E::Arrow { .. } => Perhaps(Class::Corrupt),
        E::Internal { message, .. } | E::Cloned { message, .. } => of_text(message),
        _ => Silent,
    }
}

fn of_store(error: &object_store::Error) -> Verdict {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Definite(Class::Gone),
        E::AlreadyExists { .. } => Definite(Class::Exists),
        E::Precondition { .. } | E::NotModified { .. } => Definite(Class::Conflict),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => Definite(Class::Denied),
        E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => Definite(Class::Invalid),
        E::NotSupported { .. } | E::NotImplemented { .. } => Definite(Class::Unsupported),
        // Everything an HTTP store has no name for: 5xx, throttling, refused
        // connections, but also odd 4xx, which the inner texts tell.
        E::Generic { store, .. } if *store != "LocalFileSystem" => Perhaps(Class::Unreachable),
        _ => Silent,
    }
}

fn of_io(error: &io::Error) -> Verdict {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Definite(Class::Gone),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Definite(Class::Denied),
        ErrorKind::AlreadyExists => Definite(Class::Exists),
        ErrorKind::TimedOut
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::StaleNetworkFileHandle => Definite(Class::Unreachable),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Perhaps(Class::Corrupt),
        // A folder, or links that lead round in a circle, where a file should be.
        ErrorKind::IsADirectory => Definite(Class::Corrupt),
        _ if is_link_loop(error) => Definite(Class::Corrupt),
        _ => Silent,
    }
}

/// The kind of this error has no stable name yet.
fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error().is_some() && error.to_string().contains("levels of symbolic links")
}

/// Errors whose types are private to their crates, by their texts.
fn of_text(text: &str) -> Verdict {
    if let Some(status) = http_status(text) {
        return match status {
            400 if CREDENTIAL_CODES.iter().any(|code| text.contains(code)) => {
                Definite(Class::Denied)
            }
            401 | 403 => Definite(Class::Denied),
            404 => Definite(Class::Gone),
            409 | 412 => Definite(Class::Conflict),
            408 | 429 | 500..=599 => Definite(Class::Unreachable),
            400..=499 => Definite(Class::Invalid),
            _ => Silent,
        };
    }
    let lower = text.to_ascii_lowercase();
    if CORRUPT_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Definite(Class::Corrupt);
    }
    if UNREACHABLE_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Perhaps(Class::Unreachable);
    }
    if DENIED_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Perhaps(Class::Denied);
    }
    Silent
}

/// Some stores answer 400 where they mean "these credentials are no good".
const CREDENTIAL_CODES: [&str; 4] = [
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "InvalidAccessKeyId",
];
const CORRUPT_TEXTS: [&str; 11] = [
    // Of a file that ends before what its manifest says.
    "invalid range",
    "requested range was invalid",
    " bytes, expected ",
    "does not appear to be a lance file",
    "wanted range starting at",
    "out of range of file",
    "does not have sufficient data",
    "failed to decode protobuf",
    "invalid format:",
    "magic number",
    "file size is too small",
];
const UNREACHABLE_TEXTS: [&str; 7] = [
    "connection refused",
    "connection reset",
    "connection closed",
    "error sending request",
    "operation timed out",
    "dns error",
    "http error",
];
const DENIED_TEXTS: [&str; 3] = [
    "permission denied",
    "no valid credentials",
    "failed to load credentials",
];

/// The status in "... status code: 503 Service Unavailable ...".
fn http_status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    fn store_error(text: &str) -> object_store::Error {
        object_store::Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        }
    }

    fn local_error(kind: ErrorKind) -> object_store::Error {
        object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(io::Error::from(kind)),
        }
    }

    fn in_lance(error: impl StdError + Send + Sync + 'static) -> lance::Error {
        lance::Error::io_source(Box::new(error))
    }

    #[test]
    fn the_class_is_found_inside_wrappers() {
        let not_found = object_store::Error::NotFound {
            path: "x".into(),
            source: "x".into(),
        };
        let precondition = object_store::Error::Precondition {
            path: "x".into(),
            source: "x".into(),
        };
        let cases: Vec<(lance::Error, Class)> = vec![
            (in_lance(not_found), Class::Gone),
            (in_lance(precondition), Class::Conflict),
            (
                in_lance(local_error(ErrorKind::PermissionDenied)),
                Class::Denied,
            ),
            (
                in_lance(io::Error::other(local_error(ErrorKind::PermissionDenied))),
                Class::Denied,
            ),
            (in_lance(local_error(ErrorKind::NotFound)), Class::Gone),
            (
                lance::Error::wrapped(Box::new(lance::Error::not_supported("flag 64"))),
                Class::Unsupported,
            ),
            (
                lance::Error::invalid_input("Invalid format: manifest length does not match"),
                Class::Corrupt,
            ),
            (
                lance::Error::invalid_input("no such column"),
                Class::Invalid,
            ),
            (
                in_lance(object_store::Error::Generic {
                    store: "memory",
                    source: "Invalid range 0..3246 for object of size 30 bytes".into(),
                }),
                Class::Corrupt,
            ),
            (lance::Error::io("something odd"), Class::Internal),
            (lance::Error::timeout("too slow"), Class::Timeout),
            (
                lance::Error::dataset_not_found(
                    "x",
                    Box::new(store_error("connection refused (os error 111)")),
                ),
                Class::Unreachable,
            ),
            (
                lance::Error::dataset_not_found("x", Box::new(lance::Error::not_found("x"))),
                Class::Gone,
            ),
        ];
        for (error, class) in cases {
            let text = error.to_string();
            assert_eq!(Fault::from(error).class, class, "{text}");
        }
    }

    #[test]
    fn an_http_status_without_a_name_of_its_own_is_read_from_the_text() {
        for (status, class) in [
            ("503 Service Unavailable", Class::Unreachable),
            ("429 Too Many Requests", Class::Unreachable),
            ("403 Forbidden", Class::Denied),
            ("400 Bad Request", Class::Invalid),
            ("400 Bad Request: <Code>ExpiredToken</Code>", Class::Denied),
        ] {
            let text = format!("Server returned non-2xx status code: {status}: ");
            assert_eq!(Fault::from(store_error(&text)).class, class, "{status}");
        }
        assert_eq!(
            Fault::from(store_error("error sending request")).class,
            Class::Unreachable
        );
    }
}
