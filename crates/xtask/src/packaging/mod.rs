//! A release from a checkout: binaries, tarballs, images, chart, and what tells others where they
//! are.
//!
//! In: a clean checkout and a warm cache of cargo. Out: the files of `dist/`, the same each time
//! for one commit.

mod archive;
mod chart;
mod chart_readme;
mod checkout;
mod checksums;
mod compilation;
mod components;
mod dependencies;
mod image;
mod licences;
mod root_files;
mod site;
mod standard_library;
mod tarball;
mod targets;
mod tools;
mod ways_in;

use std::fs;
use std::path::{Path, PathBuf};

use checkout::Checkout;
use targets::Target;

use crate::Failure;
use crate::arguments::Arguments;

const DIST: &str = "cargo xtask dist [--target TARGET]... [--out DIR]

Builds the static binary of each target and packs it. Without --target: those of Linux.
Needs git and python3 with pip; rustup adds a target that is missing; the other programs are fetched into target/dist-tools.";
const PACK: &str = "cargo xtask pack --target TARGET --binary FILE [--runs FILE] [--out DIR]

Packs a binary that exists. --runs names one of the same version that this machine runs, for its completions.";
const IMAGE: &str =
    "cargo xtask image [--binary TARGET=FILE]... [--without-helm | --helm TARGET=FILE...] [--out DIR]

Assembles the images from the binaries that `cargo xtask dist` built, or from those that are named.
The second image has helm of the pinned version, which Go builds, or the one that --helm names.";
const CHART: &str = "cargo xtask chart [--image REPOSITORY --digest DIGEST --helm-digest DIGEST] [--out DIR]

Packs the chart. The image and the digests of both its variants become the defaults of its values.";
const CHART_README: &str = "cargo xtask chart-readme [--check]

Writes charts/moorline/README.md from the values of the chart. With --check it writes nothing, and fails if the page is another one.";
const WAYS_IN: &str = "cargo xtask ways-in --url URL [--homepage URL] [--out DIR]

Writes the krew manifest and the Homebrew formula. URL is where the tarballs of this version lie.";
const SITE: &str = "cargo xtask site

Makes the documentation as a site in target/site, and checks its links. MOORLINE_SOURCE is the address of the repository, to which links out of docs/ lead.";
const CHECKSUMS: &str = "cargo xtask checksums [--out DIR]

Writes SHA256SUMS of the files of a folder, dist by default.";
const VERIFY: &str = "cargo xtask verify [DIR]

Compares the files of a folder, dist by default, with its SHA256SUMS.";

/// Targets that are built when none is named.
const BUILT_HERE: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Builds and packs targets.
pub(crate) fn dist(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(DIST) {
        return Ok(());
    }
    let mut triples = arguments.values("--target")?;
    let checkout = Checkout::here()?;
    let out = folder(&mut arguments, &checkout)?;
    arguments.end()?;
    if triples.is_empty() {
        triples = BUILT_HERE.map(str::to_owned).to_vec();
    }
    let targets = triples.iter().map(|triple| Target::named(triple)).collect::<Result<Vec<_>, _>>();
    let targets = targets.map_err(Failure::Usage)?;
    for target in &targets {
        standard_library::add_standard_library(&checkout, target)?;
    }
    let tools = tools::Tools::fetched(&checkout)?;
    let mut programs = Vec::new();
    for target in targets {
        programs.push((target, compilation::compile(&checkout, &tools, target)?));
    }
    // Programs for another machine cannot print their completions here.
    let runs =
        programs.iter().map(|(_, program)| program).find(|program| tarball::completions(program).is_ok());
    let runs = match runs {
        Some(program) => program.clone(),
        None => compilation::compile_for_here(&checkout)?,
    };
    for (target, program) in &programs {
        pack_one(&checkout, target, program, &runs, &out)?;
    }
    Ok(())
}

/// Packs a binary.
pub(crate) fn pack(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(PACK) {
        return Ok(());
    }
    let required =
        |value: Option<String>, name: &str| value.ok_or_else(|| Failure::Usage(format!("{name} is missing")));
    let target = required(arguments.value("--target")?, "--target")?;
    let program = PathBuf::from(required(arguments.value("--binary")?, "--binary")?);
    let runs = arguments.value("--runs")?.map_or_else(|| program.clone(), PathBuf::from);
    let checkout = Checkout::here()?;
    let out = folder(&mut arguments, &checkout)?;
    arguments.end()?;
    pack_one(&checkout, Target::named(&target).map_err(Failure::Usage)?, &program, &runs, &out)?;
    Ok(())
}

/// Packs the binary of a target, and renews the checksums.
fn pack_one(
    checkout: &Checkout,
    target: &Target,
    program: &Path,
    runs: &Path,
    out: &Path,
) -> Result<(), String> {
    let bytes = read(program)?;
    target.check(&bytes)?;
    let packages = dependencies::packages(&checkout.root, target.triple)?;
    let components = components::document(&packages, checkout, target.triple);
    let content = tarball::Content {
        target,
        program: &bytes,
        licences: &licences::text(&packages)?,
        completions: &tarball::completions(runs)?,
    };
    let stem = target.stem(&checkout.version);
    write(&out.join(format!("{stem}.tar.gz")), &tarball::pack(checkout, &content)?)?;
    write(&out.join(format!("{stem}.cdx.json")), format!("{components:#}\n").as_bytes())?;
    checksums::write(out)
}

/// Assembles the images.
pub(crate) fn image(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(IMAGE) {
        return Ok(());
    }
    let checkout = Checkout::here()?;
    let mut binaries = files_of_targets(&mut arguments, "--binary")?;
    let helms = files_of_targets(&mut arguments, "--helm")?;
    let without_helm = arguments.flag("--without-helm");
    if without_helm && !helms.is_empty() {
        return Err(Failure::Usage("--helm and --without-helm exclude each other".into()));
    }
    let out = folder(&mut arguments, &checkout)?;
    arguments.end()?;
    if binaries.is_empty() {
        for triple in BUILT_HERE {
            binaries.push((
                Target::named(triple)?,
                checkout.root.join("target").join(triple).join("dist/moorline"),
            ));
        }
    }
    let mut programs = Vec::new();
    for (target, file) in &binaries {
        programs.push(image::Programs { target, moorline: read(file)?, helm: None });
    }
    write_image(&checkout, &out, "image", &programs)?;
    if !without_helm {
        for programs in &mut programs {
            let named = helms.iter().find(|(target, _)| target.triple == programs.target.triple);
            programs.helm = Some(match named {
                Some((_, file)) => read(file)?,
                None => read(&tools::helm(&checkout, programs.target.architecture)?)?,
            });
        }
        write_image(&checkout, &out, "image-helm", &programs)?;
    }
    Ok(())
}

/// Takes the files that an option names, each with its target.
fn files_of_targets(
    arguments: &mut Arguments,
    option: &str,
) -> Result<Vec<(&'static Target, PathBuf)>, Failure> {
    let mut files = Vec::new();
    for value in arguments.values(option)? {
        let (triple, file) =
            value.split_once('=').ok_or_else(|| Failure::Usage(format!("{value}: no TARGET=FILE")))?;
        files.push((Target::named(triple).map_err(Failure::Usage)?, PathBuf::from(file)));
    }
    Ok(files)
}

fn write_image(
    checkout: &Checkout,
    out: &Path,
    name: &str,
    programs: &[image::Programs],
) -> Result<(), String> {
    let variant = name.strip_prefix("image").unwrap_or_default();
    let layout = out.join(name);
    let digest = image::write(&layout, checkout, &format!("{}{variant}", checkout.version), programs)?;
    write(&out.join(format!("moorline-{}-{name}.tar", checkout.version)), &image::pack(&layout, checkout)?)?;
    checksums::write(out)?;
    println!("{name} {digest}");
    Ok(())
}

/// Packs the chart.
pub(crate) fn chart(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(CHART) {
        return Ok(());
    }
    let checkout = Checkout::here()?;
    let mut value = |name| arguments.value(name);
    let image = match (value("--image")?, value("--digest")?, value("--helm-digest")?) {
        (Some(repository), Some(digest), Some(helm_digest)) => {
            Some(chart::Image { repository, digest, helm_digest })
        }
        (None, None, None) => None,
        _ => {
            let reason = "--image, --digest and --helm-digest are given together, or not at all";
            return Err(Failure::Usage(reason.into()));
        }
    };
    let out = folder(&mut arguments, &checkout)?;
    arguments.end()?;
    let packed = chart::pack(&checkout, image.as_ref())?;
    write(&out.join(format!("moorline-{}.tgz", packed.version)), &packed.bytes)?;
    checksums::write(&out)?;
    Ok(())
}

/// Writes the README of the chart, or compares it.
pub(crate) fn chart_readme(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(CHART_README) {
        return Ok(());
    }
    let checks = arguments.flag("--check");
    arguments.end()?;
    let folder = Checkout::here()?.root.join("charts/moorline");
    let page = chart_readme::page(&String::from_utf8_lossy(&read(&folder.join("values.yaml"))?));
    let path = folder.join("README.md");
    match checks {
        true if fs::read_to_string(&path).ok().as_ref() == Some(&page) => Ok(()),
        true => Err(Failure::Found(format!("{} is out of date: cargo xtask chart-readme", path.display()))),
        false => Ok(write(&path, page.as_bytes())?),
    }
}

/// Writes what package managers read.
pub(crate) fn ways_in(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(WAYS_IN) {
        return Ok(());
    }
    let checkout = Checkout::here()?;
    let url =
        arguments.value("--url")?.ok_or_else(|| Failure::Usage(format!("--url is missing\n\n{WAYS_IN}")))?;
    let homepage = arguments.value("--homepage")?.unwrap_or_else(|| url.clone());
    let out = folder(&mut arguments, &checkout)?;
    arguments.end()?;
    let release = ways_in::Release {
        version: &checkout.version,
        url: url.trim_end_matches('/'),
        homepage: &homepage,
        checksums: &checksums::read(&out)?,
    };
    write(&out.join("moorline-krew.yaml"), release.krew()?.as_bytes())?;
    write(&out.join("moorline.rb"), release.homebrew()?.as_bytes())?;
    checksums::write(&out)?;
    Ok(())
}

/// Compares a folder with its checksums.
pub(crate) fn verify(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(VERIFY) {
        return Ok(());
    }
    let folder = arguments.word().unwrap_or_else(|| "dist".into());
    arguments.end()?;
    let count = checksums::verify(Path::new(&folder)).map_err(Failure::Found)?;
    println!("{count} files are as {} has them", checksums::FILE);
    Ok(())
}

/// Makes the documentation as a site.
pub(crate) fn site(arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(SITE) {
        return Ok(());
    }
    arguments.end()?;
    let pages = site::make(&Checkout::here()?).map_err(Failure::Found)?;
    println!("{pages} pages in target/site");
    Ok(())
}

/// Writes the checksums of what is in the folder, such as files that another machine packed.
pub(crate) fn checksums(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(CHECKSUMS) {
        return Ok(());
    }
    let out = folder(&mut arguments, &Checkout::here()?)?;
    arguments.end()?;
    Ok(checksums::write(&out)?)
}

/// Takes the folder of the output, and makes it.
fn folder(arguments: &mut Arguments, checkout: &Checkout) -> Result<PathBuf, Failure> {
    let folder = arguments.value("--out")?.map_or_else(|| checkout.root.join("dist"), PathBuf::from);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
