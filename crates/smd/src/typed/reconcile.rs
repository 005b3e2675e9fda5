//! Recorded sets brought in line with a schema that has changed since.
//!
//! What has become atomic is owned as a whole by whoever owned a part of it. The other way
//! round nothing can be done: nobody knows which parts were meant.

use super::{Kind, Kinds, ValidationErrors, invalid_atom, resolve};
use crate::fieldpath::{Node, PathElement, Set};
use crate::schema::{Atom, Schema, TypeId};

pub(super) fn reconcile(schema: &Schema, set: &mut Set) -> Result<(), ValidationErrors> {
    children(schema, resolve(schema, Some(schema.root()))?, set)
}

fn children(schema: &Schema, container: &Atom, set: &mut Set) -> Result<(), ValidationErrors> {
    for node in set.nodes_mut() {
        match Kinds::of(container, None).first() {
            Some(Kind::Map) => {
                let Some(map) = &container.map else { continue };
                if schema.is_untyped_deduced(map) {
                    return Ok(());
                }
                let id = match &node.element {
                    PathElement::Field(name) => map.type_of(name),
                    _ => map.element,
                };
                // Fields that are no longer declared are left alone.
                if id.is_some() {
                    one(schema, id, node)?;
                }
            }
            Some(Kind::List) => {
                let Some(list) = &container.list else { continue };
                one(schema, list.element, node)?;
            }
            Some(Kind::Scalar) => return Ok(()),
            None => return Err(invalid_atom(Some(container))),
        }
    }
    Ok(())
}

fn one(schema: &Schema, id: Option<TypeId>, node: &mut Node) -> Result<(), ValidationErrors> {
    let atom = resolve(schema, id)?;
    let atomic = match Kinds::of(atom, None).first() {
        Some(Kind::Map) => {
            atom.map.as_ref().is_some_and(|map| map.atomic && !schema.is_untyped_deduced(map))
        }
        Some(Kind::List) => atom.list.as_ref().is_some_and(|list| !list.associative),
        Some(Kind::Scalar) => false,
        None => return Err(invalid_atom(Some(atom))),
    };
    if node.children.is_empty() {
        return Ok(());
    }
    if atomic {
        node.member = true;
        node.children = Set::new();
        return Ok(());
    }
    children(schema, atom, &mut node.children)
}
