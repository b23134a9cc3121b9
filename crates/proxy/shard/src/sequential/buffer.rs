//! A buffer for bytes that were read and not yet consumed.

use std::io;

/// Initial size, and maximum memory kept while the buffer is empty, in bytes. A read has room for at
/// least a quarter of it.
const READ: usize = 16 * 1024;

/// A buffer for bytes that were read and not yet consumed.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// The unconsumed bytes.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Consumes this many bytes.
    pub(super) fn take(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > READ {
                self.bytes = Vec::new();
            }
        }
    }

    /// Appends the result of one call of `read`.
    ///
    /// # Errors
    /// Returns the error of `read`.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if self.bytes.len() - self.end < READ / 4 {
            // Each byte is moved once on average.
            if self.start > self.bytes.len() / 2 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= std::mem::take(&mut self.start);
            } else {
                self.bytes.resize((2 * self.bytes.len()).max(READ), 0);
            }
        }
        let count = read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(
            steps in proptest::collection::vec((0usize..20_000, 0usize..20_000), 1..60),
        ) {
            let (mut buffer, mut next_in, mut next_out) = (Buffer::default(), 0u32, 0u32);
            for (more, taken) in steps {
                buffer.fill(|room| {
                    let count = more.min(room.len());
                    for byte in &mut room[..count] {
                        *byte = next_in as u8;
                        next_in += 1;
                    }
                    Ok(count)
                })?;
                let taken = taken.min(buffer.rest().len());
                for byte in &buffer.rest()[..taken] {
                    prop_assert_eq!(*byte, next_out as u8);
                    next_out += 1;
                }
                buffer.take(taken);
                prop_assert_eq!(buffer.rest().len(), (next_in - next_out) as usize);
            }
        }
    }

    #[test]
    fn each_read_has_room_and_a_large_buffer_is_released() {
        let mut buffer = Buffer::default();
        for _ in 0..20 {
            buffer
                .fill(|room| {
                    assert!(room.len() >= READ / 4);
                    Ok(READ / 4)
                })
                .unwrap();
        }
        assert_eq!(buffer.rest().len(), 20 * (READ / 4));
        assert!(buffer.bytes.len() <= 8 * READ, "{}", buffer.bytes.len());
        buffer.take(buffer.rest().len());
        assert_eq!(buffer.bytes.capacity(), 0);
    }
}
