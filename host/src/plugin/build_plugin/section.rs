//! Adds a section to a finished file. Nothing that is there moves: code and offsets stay as the linker made them.

/// Appends a custom section to a module or component: id 0, length, length of the name, name, data.
pub(super) fn with_custom_section(mut binary: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(name.len() + data.len() + 8);
    leb128(name.len(), &mut body);
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(data);
    binary.push(0);
    leb128(body.len(), &mut binary);
    binary.append(&mut body);
    binary
}

fn leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Offsets in the header of a 64-bit ELF file: offset of the section table, size of an entry, number of entries, and
/// the entry of the section that holds the sections' names.
const TABLE: usize = 0x28;
const ENTRY_SIZE: usize = 0x3a;
const ENTRIES: usize = 0x3c;
const NAMES: usize = 0x3e;
/// Size of an entry, and offsets in it.
const ENTRY: usize = 64;
const OFFSET: usize = 0x18;
const SIZE: usize = 0x20;
/// Type of a section that only programs like this one read.
const SHT_PROGBITS: u32 = 1;
const SHN_LORESERVE: u16 = 0xff00;

/// Appends a section that is not loaded to a 64-bit ELF file of this machine's byte order: data, names and section
/// table are written anew at the end, and the header is told where. `None` when the file has no such table.
pub(super) fn with_elf_section(mut elf: Vec<u8>, name: &str, data: &[u8]) -> Option<Vec<u8>> {
    let table = usize::try_from(u64_at(&elf, TABLE)?).ok()?;
    let (entries, names) = (u16_at(&elf, ENTRIES)?, u16_at(&elf, NAMES)?);
    if usize::from(u16_at(&elf, ENTRY_SIZE)?) != ENTRY || names >= entries || entries >= SHN_LORESERVE - 1 {
        return None;
    }
    let length = usize::from(entries) * ENTRY;
    let mut sections = elf.get(table..table.checked_add(length)?)?.to_vec();
    let names_entry = usize::from(names) * ENTRY;
    let at = usize::try_from(u64_at(&sections, names_entry + OFFSET)?).ok()?;
    let size = usize::try_from(u64_at(&sections, names_entry + SIZE)?).ok()?;
    let mut texts = elf.get(at..at.checked_add(size)?)?.to_vec();
    let name_at = u32::try_from(texts.len()).ok()?;
    texts.extend_from_slice(name.as_bytes());
    texts.push(0);

    let data_at = append(&mut elf, data);
    let texts_at = append(&mut elf, &texts);
    put(&mut sections, names_entry + OFFSET, &texts_at.to_ne_bytes());
    put(
        &mut sections,
        names_entry + SIZE,
        &(texts.len() as u64).to_ne_bytes(),
    );
    // Name and type, no flags, no address; then offset, size, no link, no info, alignment 1, no entry size.
    sections.extend_from_slice(&name_at.to_ne_bytes());
    sections.extend_from_slice(&SHT_PROGBITS.to_ne_bytes());
    for word in [0, 0, data_at, data.len() as u64, 0, 1, 0] {
        sections.extend_from_slice(&u64::to_ne_bytes(word));
    }
    let table_at = append(&mut elf, &sections);
    put(&mut elf, TABLE, &table_at.to_ne_bytes());
    put(&mut elf, ENTRIES, &(entries + 1).to_ne_bytes());
    Some(elf)
}

/// Appends bytes at the next multiple of 8, and tells where.
fn append(elf: &mut Vec<u8>, bytes: &[u8]) -> u64 {
    elf.resize(elf.len().next_multiple_of(8), 0);
    let at = elf.len() as u64;
    elf.extend_from_slice(bytes);
    at
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection};

    use super::*;

    #[test]
    fn a_custom_section_is_appended() {
        // The length of the body, 1 + 1 + 200, takes two bytes: 202 = 0b1_1001010.
        let component = with_custom_section(b"head".to_vec(), "n", &[7; 200]);
        assert_eq!(component[..9], *b"head\0\xca\x01\x01n");
        assert_eq!((component.len(), component[208]), (209, 7));
    }

    #[test]
    fn an_elf_file_gains_a_section_and_loses_none() {
        // This program is an ELF file.
        let before = std::fs::read("/proc/self/exe").expect("the running program");
        let after = with_elf_section(before.clone(), ".lmb.test", b"what it says").expect("it has sections");
        let sections = |bytes: &[u8]| -> Vec<(String, Option<Vec<u8>>)> {
            let file = object::File::parse(bytes).expect("an ELF file");
            let of = |section: object::Section<'_, '_>| {
                let name = section.name().expect("a name").to_owned();
                let size = section.size();
                (
                    name,
                    section.data().ok().filter(|_| size < 4096).map(<[u8]>::to_vec),
                )
            };
            file.sections().map(of).collect()
        };
        let mut expected = sections(&before);
        expected.retain(|(name, _)| name != ".shstrtab");
        expected.push((".lmb.test".to_owned(), Some(b"what it says".to_vec())));
        let mut found = sections(&after);
        found.retain(|(name, _)| name != ".shstrtab");
        assert_eq!(found, expected);
        // All but the header stands where it stood.
        assert_eq!(after[64..before.len()], before[64..]);
    }

    #[test]
    fn what_has_no_sections_is_left_alone() {
        assert_eq!(with_elf_section(b"\x7fELF".to_vec(), ".x", b""), None);
        assert_eq!(with_elf_section(vec![0xff; 64], ".x", b""), None);
    }
}
