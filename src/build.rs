//! Compiles the tables by which squad routes; see `src/route/lexicon/compile.rs`.

#![expect(dead_code, reason = "squad's own modules, of which the tables need a part")]

use std::path::Path;
use std::{env, fs};

#[path = "model"]
mod model {
    mod lists;
    mod words;

    pub(crate) use lists::List;
    pub(crate) use words::stem_of;
}

#[path = "route"]
mod route {
    #[path = "lexicon/compile.rs"]
    pub(crate) mod compile;
    mod terms;

    mod lexicon {
        /// What the tables know before they are there.
        pub(in crate::route) struct Lexicon;

        impl Lexicon {
            pub(in crate::route) fn speaks(&self, _: &str) -> bool {
                false
            }

            pub(in crate::route) fn file_kind(&self, _: &str) -> Option<&'static str> {
                None
            }
        }
    }
}

fn main() {
    for path in ["src/model/lists.txt", "src/model/lists.rs", "src/model/words.rs", "src/route/terms.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-changed=src/route/lexicon");
    println!("cargo::rerun-if-changed=src/route/tables");
    let areas = fs::read_to_string("src/route/tables/areas.txt").expect("the table of areas is in the package");
    let folder = env::var_os("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("terms"), route::compile::compile(&areas)).expect("the folder is cargo's");
}
