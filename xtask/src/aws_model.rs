//! Writes the shapes of the AWS calls that we make, from the public service models.
//!
//! The models come with the Python package `botocore`, which the vendor publishes; what we take of
//! them is listed in `crates/cloud-aws/model/selection.json`. The output is the same bytes for the
//! same selection, which names the version of the package.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

const SELECTION: &str = "crates/cloud-aws/model/selection.json";
const OUTPUT: &str = "crates/cloud-aws/src/model";

/// The files, by their paths in the repository.
pub(crate) fn files(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let text = fs::read(root.join(SELECTION)).with_context(|| format!("reading {SELECTION}"))?;
    let selection: Value = serde_json::from_slice(&text).context(SELECTION)?;
    let version = selection["botocore"].as_str().context("no version of botocore is selected")?;
    let package = package(version)?;
    let digest = hex(&Sha256::digest(&text));
    let mut files = BTreeMap::new();
    for (name, chosen) in selection["services"].as_object().context("no services")? {
        let service = Service::load(&package, name, chosen)?;
        let source = service.source(&digest).with_context(|| format!("service {name}"))?;
        files.insert(Path::new(OUTPUT).join(format!("{name}.rs")), source.into_bytes());
    }
    Ok(files)
}

/// The unpacked package, downloaded once.
fn package(version: &str) -> Result<PathBuf> {
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let folder = Path::new(&home).join(".cache/fleetwright/botocore").join(version);
    if !folder.join("botocore/data").is_dir() {
        fs::create_dir_all(&folder)?;
        let requirement = format!("botocore=={version}");
        python(
            &["-m", "pip", "download", "--quiet", "--no-deps", "--dest"],
            &folder,
            &requirement,
        )?;
        let wheel = fs::read_dir(&folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
            .context("pip downloaded no wheel")?;
        let folder = folder.to_string_lossy().into_owned();
        python(&["-m", "zipfile", "-e"], &wheel, &folder)?;
    }
    Ok(folder)
}

fn python(arguments: &[&str], path: &Path, last: &str) -> Result<()> {
    let status = Command::new("python3").args(arguments).arg(path).arg(last).status();
    ensure!(status.context("running python3")?.success(), "python3 {arguments:?} failed");
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Request,
    Response,
}

struct Service {
    name: String,
    model: Value,
    chosen: Value,
}

impl Service {
    fn load(package: &Path, name: &str, chosen: &Value) -> Result<Self> {
        let version = chosen["version"].as_str().context("no version")?;
        let path = package.join(format!("botocore/data/{name}/{version}/service-2.json.gz"));
        let file = fs::File::open(&path).with_context(|| path.display().to_string())?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text)?;
        let model = serde_json::from_str(&text)?;
        Ok(Self { name: name.to_owned(), model, chosen: chosen.clone() })
    }

    fn source(&self, digest: &str) -> Result<String> {
        let metadata = &self.model["metadata"];
        let protocol = metadata["protocol"].as_str().context("no protocol")?;
        ensure!(["ec2", "query"].contains(&protocol), "protocol {protocol}");
        let title = metadata["serviceFullName"].as_str().unwrap_or_default();
        let mut out = format!(
            "// Written by `cargo xtask generate` from the public service model; do not edit.\n\
             // Selection: {digest}\n\n\
             //! {title}.\n\n\
             use super::{{Kind, Operation, Service, operation, request, response}};\n\n\
             /// The service.\n\
             pub const SERVICE: Service = Service {{\n    \
                 name: {:?},\n    endpoint: {:?},\n    version: {:?},\n}};\n",
            self.name,
            metadata["endpointPrefix"].as_str().context("no endpoint")?,
            metadata["apiVersion"].as_str().context("no version")?,
        );
        let operations: Vec<&String> =
            self.chosen["operations"].as_object().into_iter().flat_map(|map| map.keys()).collect();
        out.push_str("\n/// The operations that we call.\npub const OPERATIONS: &[&str] = &[\n");
        for name in operations {
            writeln!(out, "    {name:?},")?;
        }
        out.push_str("];\n");
        let mut requests = BTreeSet::new();
        let mut responses = BTreeSet::new();
        for (name, kind) in self.chosen["operations"].as_object().context("no operations")? {
            let operation = &self.model["operations"][name];
            let input = operation["input"]["shape"].as_str().with_context(|| name.clone())?;
            let output = operation["output"]["shape"].as_str();
            let kind = match kind.as_str() {
                Some("read") => "Read",
                Some("write") => "Write",
                Some("repeatable") => "Repeatable",
                other => bail!("{name} cannot be {other:?}"),
            };
            self.reach(input, &mut requests)?;
            if let Some(output) = output {
                self.reach(output, &mut responses)?;
            }
            let result = match operation["output"]["resultWrapper"].as_str() {
                Some(wrapper) => format!("Some({wrapper:?})"),
                None => "None".to_owned(),
            };
            let output = output.map_or("()".to_owned(), |name| format!("responses::{name}"));
            write!(
                out,
                "\noperation! {{ {name}, Kind::{kind}, {result}, requests::{input} => {output} }}\n"
            )?;
        }
        for (side, module, macro_name, what, shapes) in [
            (Side::Request, "requests", "request", "What is sent", &requests),
            (Side::Response, "responses", "response", "What is answered", &responses),
        ] {
            write!(out, "\n/// {what}.\npub mod {module} {{\n    use super::{macro_name};\n")?;
            for shape in shapes {
                self.structure(&mut out, side, protocol, macro_name, shape)?;
            }
            out.push_str("}\n");
        }
        self.all_used(&requests, &responses)?;
        Ok(out)
    }

    /// A selected shape that nothing reaches is a mistake.
    fn all_used(&self, requests: &BTreeSet<String>, responses: &BTreeSet<String>) -> Result<()> {
        for shape in self.chosen["shapes"].as_object().context("no shapes")?.keys() {
            ensure!(
                requests.contains(shape) || responses.contains(shape),
                "{shape} is selected, and no operation uses it"
            );
        }
        Ok(())
    }

    fn shape(&self, name: &str) -> Result<&Value> {
        self.model["shapes"].get(name).with_context(|| format!("there is no shape {name}"))
    }

    /// The members that are selected, with what the model says of them.
    fn members(&self, structure: &str) -> Result<Vec<(String, &Value)>> {
        let chosen = self.chosen["shapes"]
            .get(structure)
            .and_then(Value::as_array)
            .with_context(|| format!("nothing is selected of {structure}"))?;
        let all = &self.shape(structure)?["members"];
        let member = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            let member =
                all.get(name).with_context(|| format!("{structure} has no member {name}"))?;
            Ok((name.to_owned(), member))
        };
        chosen.iter().map(member).collect()
    }

    fn reach(&self, name: &str, found: &mut BTreeSet<String>) -> Result<()> {
        let shape = self.shape(name)?;
        match shape["type"].as_str() {
            Some("structure") if found.insert(name.to_owned()) => {
                for (_, member) in self.members(name)? {
                    self.reach(member["shape"].as_str().unwrap_or_default(), found)?;
                }
                Ok(())
            }
            Some("list") => {
                self.reach(shape["member"]["shape"].as_str().unwrap_or_default(), found)
            }
            _ => Ok(()),
        }
    }

    fn structure(
        &self,
        out: &mut String,
        side: Side,
        protocol: &str,
        macro_name: &str,
        name: &str,
    ) -> Result<()> {
        let members = self.members(name)?;
        if members.is_empty() {
            writeln!(out, "\n    {macro_name}! {{ {name} {{}} }}")?;
            return Ok(());
        }
        writeln!(out, "\n    {macro_name}! {{\n        {name} {{")?;
        for (member, model) in members {
            let shape = model["shape"].as_str().unwrap_or_default();
            let rust = self.rust_type(shape)?;
            let rust = if rust.starts_with("Vec<") { rust } else { format!("Option<{rust}>") };
            let wire = match (side, protocol) {
                (Side::Response, _) => model["locationName"].as_str().unwrap_or(&member).to_owned(),
                (Side::Request, "ec2") => match model["queryName"].as_str() {
                    Some(name) => name.to_owned(),
                    None => capital(model["locationName"].as_str().unwrap_or(&member)),
                },
                (Side::Request, _) if self.shape(shape)?["type"] == "list" => {
                    ensure!(self.shape(shape)?.get("flattened").is_none(), "{shape} is flattened");
                    format!("{member}.member")
                }
                (Side::Request, _) => member.clone(),
            };
            writeln!(out, "            {}: {rust} = {wire:?},", snake(&member))?;
        }
        writeln!(out, "        }}\n    }}")?;
        Ok(())
    }

    fn rust_type(&self, name: &str) -> Result<String> {
        let shape = self.shape(name)?;
        Ok(match shape["type"].as_str().unwrap_or_default() {
            "string" | "timestamp" => "String".to_owned(),
            "integer" | "long" => "i64".to_owned(),
            "boolean" => "bool".to_owned(),
            "structure" => name.to_owned(),
            "list" => {
                let item = shape["member"]["shape"].as_str().unwrap_or_default();
                format!("Vec<{}>", self.rust_type(item)?)
            }
            other => bail!("{name} is of type {other}"),
        })
    }
}

fn capital(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + characters.as_str()
    })
}

/// `EnableResourceNameDnsAAAARecord` is `enable_resource_name_dns_aaaa_record`.
fn snake(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| characters.get(index));
        let after = characters.get(index + 1);
        let starts_word = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_rust() {
        for (name, expected) in [
            ("ImageId", "image_id"),
            ("EnableResourceNameDnsAAAARecord", "enable_resource_name_dns_aaaa_record"),
            ("VCpuInfo", "v_cpu_info"),
            ("SizeInMiB", "size_in_mi_b"),
            ("Ipv6Address", "ipv6_address"),
        ] {
            assert_eq!(snake(name), expected);
        }
        assert_eq!(capital("blockDevice"), "BlockDevice");
    }
}
