//! `hearth explain`: the stories behind the codes.

use hearth_lang::codes;

use crate::arguments::Explain;
use crate::failure::Failure;
use crate::{near, output};

pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let Some(code) = &arguments.code else {
        let list: String = codes::all()
            .map(|entry| format!("{}  {}\n", entry.code.0, entry.title))
            .collect();
        return output::write(list);
    };
    let Some(entry) = codes::lookup(code) else {
        let known = codes::all().map(|entry| entry.code.0);
        let advice = near::nearest(code, known)
            .map(|near| format!("did you mean {near}? "))
            .unwrap_or_default();
        return Err(Failure::input(format!(
            "there is no code {code:?}; {advice}`hearth explain` lists them all"
        )));
    };
    output::write(format!(
        "{}: {}\n\n{}\n",
        entry.code.0,
        entry.title,
        entry.story.trim_end()
    ))
}
