//! What vendors do: `keygen`, `build`, `sign`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::super::exit::{Exit, Failure};
use super::{FormatArgs, failure, now, print};
use crate::plugin::pack::{PackError, SecretKey, build, sign};

#[derive(Debug, Args)]
pub(in crate::cli) struct KeygenArgs {
    /// File for the private key; the public one is written to FILE.pub. Neither may exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BuildArgs {
    /// Folder with pack.toml and the files that it names
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Archive to write
    #[arg(long, value_name = "FILE.tar.zst")]
    out: PathBuf,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SignArgs {
    /// Archive or folder; an earlier signature is replaced
    #[arg(value_name = "FILE|DIR")]
    pack: PathBuf,

    /// Private key to sign with
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// Days from now until the signature expires
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_days: u32,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn keygen(args: &KeygenArgs) -> Result<Exit, Failure> {
    let failed = |error| {
        let path = args.out.clone();
        failure(PackError::Key { path, error })
    };
    let secret = SecretKey::generate().map_err(failed)?;
    let public_file = secret.write(&args.out).map_err(failed)?;
    let public = secret.public();
    let lines = [
        (
            "private key",
            format!("{} (keep it to yourself)", args.out.display()),
        ),
        (
            "public key",
            format!("{} (give it to those who use your packs)", public_file.display()),
        ),
        ("fingerprint", public.fingerprint()),
    ];
    let value = json!({
        "private_key_file": args.out,
        "public_key_file": public_file,
        "public_key": public,
        "fingerprint": public.fingerprint(),
    });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}

pub(super) fn build_pack(args: &BuildArgs) -> Result<Exit, Failure> {
    let built = build(&args.dir, &args.out).map_err(failure)?;
    let manifest = &built.manifest;
    let plugins: Vec<&str> = manifest
        .plugins
        .iter()
        .map(|plugin| plugin.file.as_str())
        .collect();
    let lines = [
        ("pack", format!("{} {}", manifest.name, manifest.version)),
        ("file", args.out.display().to_string()),
        ("size", format!("{} bytes", built.size)),
        ("sha256", built.sha256.clone()),
        ("plugins", plugins.join(", ")),
    ];
    let value = json!({
        "file": args.out,
        "size": built.size,
        "sha256": built.sha256,
        "pack": manifest,
    });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}

pub(super) fn sign_pack(args: &SignArgs) -> Result<Exit, Failure> {
    let secret = SecretKey::read(&args.key).map_err(|error| {
        let path = args.key.clone();
        failure(PackError::Key { path, error })
    })?;
    let signature = sign(&args.pack, &secret, now(), args.valid_days).map_err(failure)?;
    let lines = [
        ("signed", args.pack.display().to_string()),
        ("fingerprint", signature.key.fingerprint()),
        ("expires", signature.expires.to_string()),
    ];
    let value = json!({
        "file": args.pack,
        "fingerprint": signature.key.fingerprint(),
        "created": signature.created,
        "expires": signature.expires,
    });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}
