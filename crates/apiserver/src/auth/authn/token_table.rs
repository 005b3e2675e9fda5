//! Static tokens.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::csv::{self, CsvError};
use crate::user::UserInfo;

/// Users by their static token.
///
/// Tokens are kept and looked up as their SHA-256 digest: how long a look-up takes tells nothing
/// about the tokens in the table.
#[derive(Clone, Debug, Default)]
pub struct TokenTable {
    users: BTreeMap<[u8; 32], UserInfo>,
}

/// A table of tokens that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenTableError {
    /// It is not comma separated values.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// A line has too few columns.
    #[error(
        "token file '{file}' must have at least 3 columns (token, user name, user uid), found {found}"
    )]
    TooFewColumns {
        /// The name of the file.
        file: String,
        /// How many columns the line has.
        found: usize,
    },
}

impl TokenTable {
    /// Reads lines of `token,user,uid,"group1,group2"`; `file` is named in errors. Lines with an
    /// empty token are skipped; of two lines with one token, the last counts.
    pub fn parse(text: &str, file: &str) -> Result<Self, TokenTableError> {
        let mut table = Self::default();
        for record in csv::records(text)? {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(TokenTableError::TooFewColumns {
                    file: file.to_owned(),
                    found: record.len(),
                });
            };
            if token.is_empty() {
                tracing::warn!(file, "empty token in token file");
                continue;
            }
            let groups = rest
                .first()
                .map(|groups| groups.split(',').map(str::to_owned).collect())
                .unwrap_or_default();
            let user =
                UserInfo { name: name.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
            if table.insert(token, user).is_some() {
                tracing::warn!(file, "duplicate token in token file");
            }
        }
        Ok(table)
    }

    /// Adds a token; the user it belonged to before is returned.
    pub fn insert(&mut self, token: &str, user: UserInfo) -> Option<UserInfo> {
        self.users.insert(digest(token), user)
    }

    /// The user of a token.
    pub fn user(&self, token: &str) -> Option<&UserInfo> {
        self.users.get(&digest(token))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_upstream_does() {
        let table = TokenTable::parse(
            "t1,alice,1,\"g1,g2\"\nt2,bob,2\n,nobody,3\nt1,carol,4,,\n",
            "tokens.csv",
        )
        .unwrap();
        let carol = table.user("t1").unwrap();
        assert_eq!((carol.name.as_str(), carol.uid.as_str()), ("carol", "4"));
        // An empty column is one empty group.
        assert_eq!(carol.groups, [""]);
        assert_eq!(table.user("t2").unwrap().groups, [""; 0]);
        assert_eq!(table.user(""), None);
        assert_eq!(table.user("t3"), None);
        assert_eq!(
            TokenTable::parse("a,b\n", "f").unwrap_err().to_string(),
            "token file 'f' must have at least 3 columns (token, user name, user uid), found 2"
        );
    }
}
