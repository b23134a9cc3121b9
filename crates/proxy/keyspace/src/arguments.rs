//! The arguments of a request, in whatever form.

use regatta_proto::resp;

/// The arguments of a request, starting with its name.
pub trait Arguments {
    /// Returns the number of arguments, including the name.
    fn count(&self) -> usize;

    /// Returns the argument at this position; 0 is the name. `None` after the last.
    fn get(&self, position: usize) -> Option<&[u8]>;

    /// Returns whether the argument at this position is this word, ignoring case.
    fn is(&self, position: usize, word: &str) -> bool {
        self.get(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    }
}

impl Arguments for resp::Command<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn get(&self, position: usize) -> Option<&[u8]> {
        self.arg(position)
    }
}

impl<T: AsRef<[u8]>> Arguments for [T] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn get(&self, position: usize) -> Option<&[u8]> {
        <[T]>::get(self, position).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_command_and_a_slice_behave_the_same() {
        let mut commands = resp::Commands::new(resp::CommandLimits::default());
        let (_, command) = commands.next(b"get \"a b\"\r\n").unwrap();
        let (command, slice) = (command.unwrap(), ["get", "a b"]);
        assert_eq!(Arguments::count(&command), slice[..].count());
        for position in 0..3 {
            assert_eq!(Arguments::get(&command, position), Arguments::get(&slice[..], position));
        }
        assert!(command.is(0, "GET") && !command.is(1, "a") && !command.is(2, ""));
    }
}
