//! The source's generators, as a table: for uses that need their requests and not their load.

use std::fmt::Write;

use hearth_allocators::synthetic::{Model, Random, Request, Units, plan};

/// Requests of the model of that name (`mean`, else the other), as lines of bytes, begin and end in
/// the model's time; the first line names the columns.
#[must_use]
pub fn requests(model: &str, is_corrected: bool, count: usize, seed: u64) -> String {
    let model = match model {
        "mean" => Model::published_mean(),
        _ => Model::published_cdf(),
    };
    let units = if is_corrected {
        Units::Corrected
    } else {
        Units::AsPublished
    };
    let mut planned = vec![Request::default(); count];
    plan(&model, units, &mut Random::new(seed), &mut planned);
    let mut text = String::from("bytes,begin,end\n");
    for request in planned {
        let _ = writeln!(
            text,
            "{},{:.0},{:.0}",
            request.bytes, request.begin, request.end
        );
    }
    text
}
