//! What a call must be.

/// Maximum number of bytes of a message to send, and of an expected one.
pub const LONGEST_MESSAGE: usize = 4 << 20;

/// What messages as JSON need.
pub(super) const NEEDS_TYPES: &str =
    "JSON needs the `.proto` file: `--proto FILE.proto` (`proto = \"FILE.proto\"`)";

/// Checks the path of a method: `/package.Service/Method`.
///
/// # Errors
/// What was expected, in one sentence.
pub fn check_path(path: &str) -> Result<(), String> {
    let is_name = |name: &str| {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || "_.-~".contains(c);
        !name.is_empty() && name.chars().all(is_name_char)
    };
    match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
        Some((service, method)) if is_name(service) && is_name(method) => Ok(()),
        _ => Err(format!(
            "{path:?} is not the path of a method; expected /PACKAGE.SERVICE/METHOD, e.g. \
             /helloworld.Greeter/SayHello"
        )),
    }
}

/// Checks the length of a message to send, or of an expected one.
///
/// # Errors
/// The limit, in one sentence.
pub fn check_length(bytes: usize) -> Result<(), String> {
    if bytes > LONGEST_MESSAGE {
        return Err(format!("the message has {bytes} bytes; expected at most {LONGEST_MESSAGE}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_service_and_a_method() {
        for path in ["/a.B/C", "/B/C", "/a.b_2.C/D", "/a-b/c"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in ["", "/", "/a", "/a/", "//b", "a/b", "/a/b/c", "/a/b?c", "/a%20/b", "/a/b/"] {
            assert!(check_path(path).unwrap_err().contains("/PACKAGE.SERVICE/METHOD"), "{path}");
        }
    }

    #[test]
    fn a_message_has_a_maximum_length() {
        assert_eq!(check_length(LONGEST_MESSAGE), Ok(()));
        assert!(check_length(LONGEST_MESSAGE + 1).is_err());
    }
}
