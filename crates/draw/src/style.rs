//! The one style sheet. Series are coloured by class `s0` to `s7` (`s8` is one more for kinds),
//! steps of a heat map `h0` to `h9`; everything else by its role.

/// Number of colours for series. Further ones begin again.
pub(crate) const SERIES: usize = 8;

/// Number of steps in a heat map.
pub(crate) const STEPS: usize = 10;

/// First step on which dark text is more readable than white.
pub(crate) const DARK_TEXT_FROM: usize = 5;

/// Appearance of a kind of thing, in all pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look(&'static str);

impl Look {
    pub(crate) const fn new(class: &'static str) -> Look {
        Look(class)
    }

    /// The colour of a series, from 0; further ones begin again.
    pub fn series(nth: usize) -> Look {
        const CLASSES: [&str; SERIES] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
        Look(CLASSES[nth % SERIES])
    }

    pub(crate) fn class(self) -> &'static str {
        self.0
    }
}

/// Rules that differ between light and dark. Series have a contrast of at least 3 to 1 to their
/// background, text 4.5 to 1.
pub(crate) const COLOURS: &str = "\
:root{--paper:#fdfdfc;--panel:#f3f4f2;--ink:#1d2430;--faint:#5a6472;--grid:#e2e5e8;--edge:#b7bdc6;\
--c0:#1f6fb4;--c1:#c2560a;--c2:#2a8446;--c3:#7a4fb0;--c4:#be3040;--c5:#0d7f88;--c6:#83641c;--c7:#6b7280;--c8:#b0478f;\
--bad:#b3261e;--bad-paper:#fbeceb;--good:#23703c;--good-paper:#eaf5ed;--note:#7a5a00;--note-paper:#fbf4e0;\
--node:#e8eef6;--package:#f6f6f3;--cache:#dfe9dd;--core:#ffffff;--thread:#d5e2f0}\
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--panel:#1d2127;--ink:#e5e8eb;--faint:#a0a9b5;\
--grid:#2c3139;--edge:#525b67;--c0:#5aa9e6;--c1:#f0954a;--c2:#5cc280;--c3:#b799ea;--c4:#f27f87;\
--c5:#4cc3cc;--c6:#cfae5a;--c7:#a3abb6;--c8:#e68ac8;--bad:#ff9b92;--bad-paper:#3a1b1a;--good:#7fd39a;--good-paper:#17301f;\
--note:#e8c765;--note-paper:#33290f;--node:#1c2836;--package:#1b1e23;--cache:#24362a;--core:#14171c;\
--thread:#2a3d54}}";

/// Rules for pictures.
pub(crate) const PICTURES: &str = "\
.picture{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;background:var(--paper)}\
.picture text{fill:var(--ink)}.picture .faint{fill:var(--faint)}.picture .title{font-size:14px;font-weight:600}\
.picture .small{font-size:10.5px}.picture .tiny{font-size:9px}.picture .bold{font-weight:600}\
.picture .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}\
.grid{stroke:var(--grid)}.grid2{stroke:var(--grid);stroke-opacity:.5}.axis{stroke:var(--edge)}\
.mark{stroke:var(--faint);stroke-dasharray:4 3}.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}\
.dashed{stroke-dasharray:6 4}.band{stroke:none;fill-opacity:.17}.whisker{stroke-width:1.4}.hit{fill:transparent}\
.s0{stroke:var(--c0);fill:var(--c0)}.s1{stroke:var(--c1);fill:var(--c1)}.s2{stroke:var(--c2);fill:var(--c2)}\
.s3{stroke:var(--c3);fill:var(--c3)}.s4{stroke:var(--c4);fill:var(--c4)}.s5{stroke:var(--c5);fill:var(--c5)}\
.s6{stroke:var(--c6);fill:var(--c6)}.s7{stroke:var(--c7);fill:var(--c7)}\
path.curve{fill:none}path.band{stroke:none}.dot{stroke:none}.hollow{fill:var(--paper);stroke-width:1.6}.bar{stroke:none}\
.h0{fill:#440154}.h1{fill:#482878}.h2{fill:#3e4989}.h3{fill:#31688e}.h4{fill:#26828e}\
.h5{fill:#1f9e89}.h6{fill:#35b779}.h7{fill:#6ece58}.h8{fill:#b5de2b}.h9{fill:#fde725}\
.none{fill:var(--panel)}.moment{fill:var(--paper);stroke:var(--ink);stroke-width:1.2}.pale{fill:var(--edge);stroke:none;fill-opacity:.6}.picture text.on-dark{fill:#fff}.picture text.on-light{fill:#111}\
.hatch-dark{stroke:#fff;stroke-opacity:.55;fill:none}.hatch-light{stroke:#111;stroke-opacity:.5;fill:none}\
.box{stroke:var(--edge)}.package{fill:var(--package)}.node{fill:var(--node)}.cache{fill:var(--cache);stroke:var(--edge);stroke-width:.7}\
.core{fill:var(--core)}.thread{fill:var(--thread);stroke:var(--edge);stroke-width:.7}.offline{fill:none;stroke:var(--edge);stroke-dasharray:3 2}\
.s8{stroke:var(--c8);fill:var(--c8)}.member{fill:var(--paper);stroke-width:1.2}.track{fill:var(--grid)}.busy{fill:var(--faint)}.over{fill:var(--bad)}\
.awaited{fill:none;stroke:var(--bad);stroke-width:1.6}.waits{fill:var(--panel);stroke:var(--bad)}\
.way{fill:none;stroke-opacity:.75;stroke-linecap:round}.way:hover{stroke-opacity:1}.bundled{stroke-opacity:.55}.bundled.w0{stroke-opacity:.38}\
.w0{stroke-width:.8}.w1{stroke-width:1.4}.w2{stroke-width:2.2}.w3{stroke-width:3.4}.w4{stroke-width:5}.w5{stroke-width:7}\
.way0{stroke:var(--c7)}.way1{stroke:var(--c2)}.way2{stroke:var(--c6)}.way3{stroke:var(--c1)}.way4{stroke:var(--c4)}";

/// Rules for pages.
pub(crate) const PAGES: &str = "\
*{box-sizing:border-box}html{color-scheme:light dark}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}\
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}\
h2{font-size:1.2rem;margin:2.6rem 0 .5rem;padding-top:.7rem;border-top:1px solid var(--grid)}h3{font-size:1rem;margin:1.4rem 0 .4rem}\
p{margin:.5rem 0;max-width:46rem}.lead{color:var(--faint)}nav{margin:1rem 0 0;font-size:.9rem}nav a{margin-right:1rem;white-space:nowrap}\
a{color:var(--c0)}figure{margin:1rem 0}figure .scroll{overflow-x:auto}.picture{max-width:100%;height:auto;display:block}\
figcaption{color:var(--faint);font-size:.88rem;max-width:46rem;margin-top:.3rem}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;margin:.6rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.22rem .8rem .22rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}\
th{font-weight:600;color:var(--faint)}td.right,th.right{text-align:right;white-space:nowrap}\
.callout{border-left:4px solid;padding:.55rem .9rem;margin:.6rem 0;border-radius:0 4px 4px 0;max-width:56rem}\
.callout p{margin:.15rem 0;max-width:none}.bad{border-color:var(--bad);background:var(--bad-paper)}\
.good{border-color:var(--good);background:var(--good-paper)}.note{border-color:var(--note);background:var(--note-paper)}\
.bad strong{color:var(--bad)}.good strong{color:var(--good)}.note strong{color:var(--note)}\
ul{margin:.4rem 0;padding-left:1.2rem;max-width:46rem}pre{font:.85rem/1.45 ui-monospace,'DejaVu Sans Mono',monospace;overflow-x:auto;margin:.6rem 0;padding:.6rem .9rem;background:var(--panel);border-radius:4px}\
details{margin:.6rem 0}summary{cursor:pointer;color:var(--faint);font-size:.9rem}\
footer{margin-top:3rem;color:var(--faint);font-size:.85rem;border-top:1px solid var(--grid);padding-top:.7rem}\
@media (max-width:700px){figure .picture{max-width:none}td:not(.right){min-width:6.5rem}}\
@media print{nav{display:none}h2{break-after:avoid}figure{break-inside:avoid}}";

/// The rules with the light value before each named colour: viewers that know no variables, such as
/// librsvg and Inkscape, skip what they cannot read and would draw everything black.
pub(crate) fn with_plain_colours(rules: &str) -> String {
    let mut text = String::with_capacity(2 * rules.len());
    for part in rules.split_inclusive(['{', ';', '}']) {
        let declaration = part.trim_end_matches(['{', ';', '}']);
        if let Some(plain) = plain(declaration) {
            text.push_str(&plain);
            text.push(';');
        }
        text.push_str(part);
    }
    text
}

/// A declaration with its colour in light; none if it names no colour.
fn plain(declaration: &str) -> Option<String> {
    let (before, rest) = declaration.split_once("var(")?;
    let (name, behind) = rest.split_once(')')?;
    let (_, value) = COLOURS.split_once(&format!("{name}:"))?;
    let value = value.split([';', '}']).next()?;
    Some(format!("{before}{value}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_colour_is_there_without_variables_too() {
        let rules = with_plain_colours(".a{fill:var(--c0);stroke-width:2}.b{stroke:var(--paper)}");
        assert_eq!(
            rules,
            ".a{fill:#1f6fb4;fill:var(--c0);stroke-width:2}.b{stroke:#fdfdfc;stroke:var(--paper)}"
        );
        let all = with_plain_colours(PICTURES);
        assert_eq!(
            all.matches("var(").count(),
            PICTURES.matches("var(").count()
        );
        for rule in PICTURES.split_inclusive(['{', ';', '}']) {
            let declaration = rule.trim_end_matches(['{', ';', '}']);
            let has_plain = plain(declaration).is_some_and(|plain| plain.contains(":#"));
            assert_eq!(has_plain, declaration.contains("var("), "{declaration}");
        }
    }
}
