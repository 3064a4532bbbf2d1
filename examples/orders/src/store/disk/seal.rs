//! The checksum of an entry: it stands after the value, and is of the key and the value. So an entry
//! of which any bit was flipped on the disk is found out, and not served.

use super::{DIGEST, digest};

/// Bytes of a checksum.
const LENGTH: usize = 4;

/// The value as it is stored.
pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &sum(key, value)[..]].concat()
}

/// The value of a stored one; `None` if the entry is damaged.
pub(super) fn unseal<'a>(key: &[u8], stored: &'a [u8]) -> Option<&'a [u8]> {
    let (value, found) = stored.split_at_checked(stored.len().checked_sub(LENGTH)?)?;
    (found == sum(key, value)).then_some(value)
}

fn sum(key: &[u8], value: &[u8]) -> [u8; LENGTH] {
    let all = digest(digest(DIGEST, key), value);
    ((all ^ all >> 32) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_found() {
        let (key, stored) = (b"key".to_vec(), seal(b"key", b"a value of some length"));
        assert_eq!(unseal(&key, &stored), Some(&b"a value of some length"[..]));
        for bit in 0..8 * (key.len() + stored.len()) {
            let mut entry = [&key[..], &stored].concat();
            entry[bit / 8] ^= 1 << (bit % 8);
            let (key, stored) = entry.split_at(key.len());
            assert_eq!(unseal(key, stored), None, "bit {bit}");
        }
        (0..stored.len()).for_each(|length| assert_eq!(unseal(&key, &stored[..length]), None, "{length}"));
    }
}
