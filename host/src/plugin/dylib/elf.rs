//! What a library's bytes tell without loading it. The dynamic linker trusts its input: a truncated file kills the
//! process. So sections and segments are checked against the file's size first.

use lm_bench_plugin::manifest::{DYLIB_DESCRIPTION, DYLIB_SECTION, Description, Manifest};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, elf};

use crate::plugin::identity::{self, ManifestError};
use crate::plugin::limits::Limits;

/// Why bytes are not a native plugin for this machine.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The file is damaged.
    #[error("it is a damaged or truncated native library: {0}")]
    Damaged(String),
    /// It was built for another machine.
    #[error(
        "it is a native library for {found}, this machine needs {}",
        machine_name(MACHINE)
    )]
    Machine {
        /// The machine.
        found: String,
    },
    /// It is an executable or an object file.
    #[error("it is an ELF file, but not a shared library")]
    NotShared,
    /// No manifest, or not one of this version.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// What is known of a library before it is loaded.
#[derive(Clone, Debug)]
pub(crate) struct LibraryFacts {
    /// The manifest.
    pub(crate) manifest: Manifest,
    /// The manifest's bytes, which the loaded library must repeat.
    pub(crate) manifest_bytes: Vec<u8>,
    /// What its build recorded of it.
    pub(crate) description: Option<Description>,
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = elf::EM_AARCH64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = elf::EM_NONE;

fn machine_name(machine: u16) -> String {
    match machine {
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "AArch64".to_owned(),
        elf::EM_386 => "x86 (32 bits)".to_owned(),
        elf::EM_ARM => "ARM (32 bits)".to_owned(),
        elf::EM_RISCV => "RISC-V".to_owned(),
        elf::EM_PPC64 => "POWER".to_owned(),
        other => format!("machine number {other}"),
    }
}

/// Checks a library's structure and reads its manifest. Executes nothing.
///
/// # Errors
/// When it is not a shared library for this machine with a manifest. A plugin that this version cannot run is no
/// error.
pub(crate) fn inspect(bytes: &[u8], limits: &Limits) -> Result<LibraryFacts, ElfError> {
    check_head(bytes)?;
    inspect_foreign(bytes, limits)
}

/// As [`inspect`], for a library of whatever machine with 64 bits, which nobody will load here.
///
/// # Errors
/// When it is not a shared library with a manifest.
pub(crate) fn inspect_foreign(bytes: &[u8], limits: &Limits) -> Result<LibraryFacts, ElfError> {
    let damaged = |error: object::Error| ElfError::Damaged(error.to_string());
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(damaged)?;
    check_extents(&file, bytes.len() as u64)?;
    let mut manifests = file
        .sections()
        .filter(|section| section.name_bytes() == Ok(DYLIB_SECTION.as_bytes()));
    let section = manifests.next().ok_or(ManifestError::Missing)?;
    if manifests.next().is_some() {
        return Err(ManifestError::Several(2).into());
    }
    let manifest_bytes = section.data().map_err(damaged)?.to_vec();
    let manifest = identity::read(&manifest_bytes, limits)?;
    let described = file
        .sections()
        .find(|section| section.name_bytes() == Ok(DYLIB_DESCRIPTION.as_bytes()));
    let description = described
        .and_then(|section| section.data().ok())
        .and_then(identity::read_description);
    Ok(LibraryFacts {
        manifest,
        manifest_bytes,
        description,
    })
}

/// The machine that a library's header names.
///
/// # Errors
/// When the header is incomplete.
pub(crate) fn machine_of(bytes: &[u8]) -> Result<String, ElfError> {
    let (Some(&order), Some(&[low, high])) = (bytes.get(5), bytes.get(18..20)) else {
        return Err(ElfError::Damaged("its header is incomplete".to_owned()));
    };
    Ok(machine_name(if order == elf::ELFDATA2MSB {
        u16::from_be_bytes([low, high])
    } else {
        u16::from_le_bytes([low, high])
    }))
}

/// Checks class, byte order, type and machine.
fn check_head(bytes: &[u8]) -> Result<(), ElfError> {
    let word = |at: usize| bytes.get(at..at + 2).map(|pair| [pair[0], pair[1]]);
    let (Some(&class), Some(&order), Some(kind), Some(machine)) =
        (bytes.get(4), bytes.get(5), word(16), word(18))
    else {
        return Err(ElfError::Damaged("its header is incomplete".to_owned()));
    };
    let native_order = if cfg!(target_endian = "little") {
        elf::ELFDATA2LSB
    } else {
        elf::ELFDATA2MSB
    };
    let machine = if order == elf::ELFDATA2MSB {
        u16::from_be_bytes(machine)
    } else {
        u16::from_le_bytes(machine)
    };
    if class != elf::ELFCLASS64 || order != native_order || machine != MACHINE {
        let bits = if class == elf::ELFCLASS64 { "64" } else { "32" };
        let order = if order == elf::ELFDATA2MSB {
            "big"
        } else {
            "little"
        };
        let found = format!("{} ({bits} bits, {order}-endian)", machine_name(machine));
        return Err(ElfError::Machine { found });
    }
    if u16::from_ne_bytes(kind) != elf::ET_DYN {
        return Err(ElfError::NotShared);
    }
    Ok(())
}

/// Checks that each section and segment lies inside the file.
fn check_extents(file: &ElfFile64<'_, Endianness>, size: u64) -> Result<(), ElfError> {
    let order = file.endian();
    let damaged = |error: object::Error| ElfError::Damaged(error.to_string());
    let inside = |what: &str, offset: u64, length: u64| match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(ElfError::Damaged(format!(
            "a {what} lies beyond the end of the file"
        ))),
    };
    let segments = file
        .elf_header()
        .program_headers(order, file.data())
        .map_err(damaged)?;
    if !segments
        .iter()
        .any(|segment| segment.p_type(order) == elf::PT_DYNAMIC)
    {
        return Err(ElfError::NotShared);
    }
    for segment in segments {
        inside("segment", segment.p_offset(order), segment.p_filesz(order))?;
        if segment.p_align(order) != 0 && !segment.p_align(order).is_power_of_two() {
            return Err(ElfError::Damaged(format!(
                "a segment is aligned to {} bytes, which is no power of two",
                segment.p_align(order)
            )));
        }
    }
    for section in file.elf_section_table().iter() {
        if section.sh_type(order) != elf::SHT_NOBITS {
            inside("section", section.sh_offset(order), section.sh_size(order))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> ElfError {
        inspect(bytes, &Limits::default()).expect_err("refused")
    }

    /// The head of a 64-bit little-endian file: type at 16, machine at 18.
    fn head(class: u8, kind: u16, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, elf::ELFDATA2LSB, 1]);
        bytes[16..18].copy_from_slice(&kind.to_le_bytes());
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn other_machines_are_named() {
        let text = error(&head(elf::ELFCLASS64, elf::ET_DYN, elf::EM_RISCV)).to_string();
        assert!(text.contains("RISC-V (64 bits, little-endian)"), "{text}");
        let text = error(&head(elf::ELFCLASS32, elf::ET_DYN, elf::EM_386)).to_string();
        assert!(text.contains("x86 (32 bits) (32 bits, little-endian)"), "{text}");
    }

    #[test]
    fn executables_and_scraps_are_refused() {
        assert!(matches!(
            error(&head(elf::ELFCLASS64, elf::ET_EXEC, MACHINE)),
            ElfError::NotShared
        ));
        assert!(matches!(error(b"\x7fELF"), ElfError::Damaged(_)));
        // A header with no segment at all.
        assert!(matches!(
            error(&head(elf::ELFCLASS64, elf::ET_DYN, MACHINE)),
            ElfError::Damaged(_) | ElfError::NotShared
        ));
    }

    #[test]
    fn a_library_that_is_no_plugin_is_told_apart_from_a_damaged_one() {
        let libc = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/aarch64-linux-gnu/libc.so.6",
            "/lib64/libc.so.6",
        ];
        let Some(bytes) = libc.iter().find_map(|path| std::fs::read(path).ok()) else {
            panic!("no libc in the usual places: {libc:?}");
        };
        assert!(matches!(
            error(&bytes),
            ElfError::Manifest(ManifestError::Missing)
        ));
        for cut in [100, 1_000, bytes.len() / 2, bytes.len() - 1] {
            assert!(
                matches!(error(&bytes[..cut]), ElfError::Damaged(_)),
                "cut at {cut}"
            );
        }
    }
}
