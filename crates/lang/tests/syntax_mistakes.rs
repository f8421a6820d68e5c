//! One mistake is one diagnostic, on the right line, under the right code.
//!
//! Faulty lines end in `//~ CODE`, one code for each mistake; `//~@3 CODE` names another line.

use hearth_lang::codes;
use hearth_lang::source::{LineIndex, SourceId};
use hearth_lang::symbol::Interner;
use hearth_lang::syntax::{Dialect, parse};

fn expected(text: &str) -> Vec<(u32, String)> {
    let mut marks = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let Some((_, mark)) = content.split_once("//~") else {
            continue;
        };
        let mut words = mark.split_whitespace().peekable();
        let line = match words.peek().and_then(|word| word.strip_prefix('@')) {
            Some(other) => {
                let other = other.parse().expect("a line after @");
                words.next();
                other
            }
            None => line,
        };
        marks.extend(words.map(|code| (line, code.to_owned())));
    }
    marks.sort();
    marks
}

fn check(text: &str) {
    let mut names = Interner::default();
    let parsed = parse(text, SourceId::USER, &mut names, Dialect::Program);
    let index = LineIndex::new(text);
    let mut found: Vec<(u32, String)> = parsed
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let line = index.line(diagnostic.primary.span.start);
            (line, diagnostic.code.0.to_owned())
        })
        .collect();
    found.sort();
    let told: String = parsed
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let (line, column) = index.line_column(diagnostic.primary.span.start);
            format!(
                "{line}:{column} {} {}\n",
                diagnostic.code.0, diagnostic.title
            )
        })
        .collect();
    assert_eq!(found, expected(text), "{told}in\n{text}");
    for diagnostic in &parsed.diagnostics {
        let entry = codes::lookup(diagnostic.code.0);
        assert!(entry.is_some(), "{} has no entry", diagnostic.code.0);
        let title = &diagnostic.title;
        assert!(!title.ends_with('.'), "{title}");
        assert!(!title.starts_with(char::is_uppercase), "{title}");
    }
}

/// Programs, separated by lines of dashes.
fn check_all(programs: &str) {
    for program in programs.split("\n----\n") {
        check(program.trim_start_matches('\n'));
    }
}

#[test]
fn characters() {
    check_all(
        r#"
b = a @ 2 //~ E0101
c = 1
----
b = a @@@ ??? 2 //~ E0101 E0101
----
x = 1 ∧∧ 2 //~ E0101
y = 2
----
naïve = 1 //~ E0102
naïve := 2
----
_x = 3 //~ E0102
printInt(_x)
----
@ //~ E0101
x = 'a' //~ E0109
y = '\n' //~ E0109
z = 'several' //~ E0109
it's //~ E0101
w = 1
----
s = “quoted” //~ E0101
"#,
    );
}

#[test]
fn numbers() {
    check_all(
        r#"
a = 2147483647
b = 2147483648 //~ E0106
c = $4294967295
d = $4294967296 //~ E0106
e = #255
f = #256 //~ E0107
g = 99999999999999999999 //~ E0106
h = 1e999 //~ E0106
----
a = 12abc //~ E0108
b = 0x1F //~ E0108
c = 1_000 //~ E0108
d = 1.5e //~ E0108
e = $ //~ E0108
f = #xyz //~ E0108
g = .5 //~ E0205
h = 5. //~ E0108
j = 5.x //~ E0201
i = $1.5 //~ E0108
"#,
    );
}

#[test]
fn strings_and_comments() {
    check_all(
        r#"
printString("never closed) //~ E0104
printString("a") ; x = "b\q" //~ E0105
y = "\x41\101\n\t\"\\"
z = "\xff" //~ E0105
----
x = f(1, "open //~ E0104
y = 2
----
{ //~@2 E0103
x = 1 /* open
}
"#,
    );
}

#[test]
fn separators() {
    check_all(
        r#"
a = 1 b = 2 //~ E0201
----
a = 1 ; ; b = 2 ;
f(1) g(2) //~ E0201
x
.y := 1 //~ E0217
----
x = a
* b //~ E0217
y = (a
* b)
----
x = a
[0] := 1 //~ E0217
----
f(1)) //~ E0203
a = 1 ] //~ E0203
----
this is no program at all //~ E0219
x = 1
----
proc f() { } proc g() { } //~ E0201
x = 1, 2 //~ E0201
printInt 3 //~ E0201
{ a = 1 } { b = 2 } //~ E0201
"#,
    );
}

#[test]
fn brackets() {
    check_all(
        r#"
x = (1 + 2 //~ E0202
y = 3
----
f(1, 2 //~ E0202
send 1 on c
----
a[1 := 3 //~ E0202
b = 1
----
f(1 2) //~ E0202
----
x = (a = = b) //~ E0205
----
type INone is interface()
component C presents INone {
    constructor() { }
    behaviour {
        if a then {
            f(1)
    }
} //~ E0202
----
component C presents I {
    constructor() {
    behaviour { stop } //~ E0202
}
component D presents I {
    constructor() { }
    behaviour { stop }
}
----
proc f() {
    if a then {
        b = 1
proc g() { } //~ E0202
x = 1
----
proc f() {
    for i = 0 .. 3 do {
        if a then {
            g() //~ E0202
"#,
    );
}

#[test]
fn surplus_braces() {
    check_all(
        r#"
x = 1
} //~ W0900
----
x = 1
}
} //~@2 W0900
----
} x = 1 //~ E0204
----
x = (
} //~@1 E0205
"#,
    );
}

#[test]
fn habits() {
    check_all(
        r#"
while n < 3 { n := n + 1 } //~ E0219
x = 1
----
while (n < 3) { //~ E0219
    n := n + 1 b = 2 //~ E0201
}
----
switch (n) { //~ E0219
}
integer x = 3 //~ E0216
integer[] a = new integer[3] of 0 //~ E0216
real r, s //~ E0216
bool b := true //~ E0216
Point p = new Point(1, 2) //~ E0216
Point q //~ E0216
int n = 3 //~ E0216
var m = 3 //~ E0216
string s[10] //~ E0216
integer f(integer a) { //~ E0219
}
----
x++ //~ E0218
y-- ; z = 1 //~ E0218
x += 1 //~ E0218
x -= 1 //~ E0218
if a && b then c := 1 //~ E0218
if a || b then c := 1 //~ E0218
p->x := 3 //~ E0218
x := a << 2 //~ E0218
x := 2 ** 3 //~ E0218
x := a === b //~ E0218
if a <> b then c := 1 //~ E0218
x = a + +b
x = a - -b
x = a < -b
----
function f(a) { //~ E0219
    x := 1
}
recieve x from c //~ E0219
sned x on c //~ E0219
thorw Oops //~ E0219
fi (x) then y := 1 //~ E0201
x := a ? b : c //~ E0101
----
x = a => b //~ E0218
"#,
    );
}

#[test]
fn choices_and_loops() {
    check_all(
        r#"
if a == 1 { f() } //~ E0211
if (a) { f() } else { g() } //~ E0211
if a f() //~ E0211
if a: f() //~ E0211
if a thne f() //~ E0211
for i = 0 .. 3 od f() //~ E0212
send 1 no c //~ E0210
if a //~ E0211
b = 1
----
if a then f() ;
else g() //~ E0237
----
for i = 0 .. 3 { f(i) } //~ E0212
for i in 0 .. 3 do f(i) //~ E0210
for i = 0 to 3 do f(i) //~ E0210
for i := 0 .. 3 do f(i) //~ E0210
for (i = 0; i < 3; i++) { f(i) } //~ E0210
for i = 0 .. 3 : 0 do f(i) //~ E0232
for i = 0 .. 3 : n do f(i) //~ E0232
for i = 0 .. 3 : do f(i) //~ E0232
for i = 0 .. 3 : +2 do f(i)
for i = 0 .. 3 do //~ E0205
----
x = 1 + if a then b else c //~ E0238
x = if a then b else c
then f() //~ E0237
"#,
    );
}

#[test]
fn arms() {
    check_all(
        r#"
case n of 1: { f() } } //~ E0213
----
{
    case n of
        1: f()
        2: g() //~ E0213
    x := 1
}
----
case n of
    1: f()
       g() //~ E0235
    2: h()
    default: { }
----
case n of 1 f() default: { } //~ E0210
case n 1: f() default: { } //~ E0210
case n of 1: f(1 default: { } //~ E0202
case n of default: { }
----
project b as v onto default: { } //~ E0214
project b as v onto integer: f() ; default: { }
project b as v onto integer f() default: { } //~ E0210
project b onto integer: f() default: { } //~ E0210
----
select {
    receive x from c: f()
    g() //~ E0235
    receive y from d when y > 1 f() //~ E0210
    recieve z from e: f() //~ E0219
    default: { }
    receive w from e: f() //~ E0221
}
x = 1
----
select receive x from c: f() //~ E0210
select { x := 1 } //~ E0210
"#,
    );
}

#[test]
fn messages() {
    check_all(
        r#"
send 1 to c //~ E0210
send 1 c //~ E0210
send 1 on 2 //~ E0228
send 1 on //~ E0207
receive x on c //~ E0210
receive 3 from c //~ E0207
connect a b //~ E0210
connect a, b //~ E0210
publish c "x" //~ E0210
acknowledge x from c { f() } //~ E0210
throw 3 //~ E0207
1 := 2 //~ E0228
a.b = 3 //~ E0229
a[0] = 3 //~ E0229
try f() //~ E0234
x = try f() except { } //~ E0236
x = 1
"#,
    );
}

#[test]
fn creation_and_types() {
    check_all(
        r#"
a = new integer[n] of 0 //~ E0233
a = new integer[2, 3] of 0 //~ E0233
a = new integer[] of 0 //~ E0233
a = new integer[3] //~ E0239
a = new integer //~ E0239
a = new C //~ E0239
a = new //~ E0209
a = new in integer[3] of 0 //~ E0209
type T is struct(integer[10] a) //~ E0209
type T = integer //~ E0210
type T integer //~ E0210
type T is struct { integer a } //~ E0210
type T is struct(a, b) //~ E0240
type T is struct(a : integer) //~ E0240
type T is struct(integer a real b) //~ E0201
type T is struct(integer a, real b, bool c) //~ E0215
type T is interface(integer a) //~ E0240
type T is proc(integer, real) //~ E0215
type T is proc(integer a) //~ E0240
type T is enum(1, 2) //~ E0207
type integer is real //~ E0208
type T is while(3) //~ E0201
x = any //~ E0205
"#,
    );
}

#[test]
fn reserved_words() {
    check_all(
        r#"
length = 3 //~ E0208
when := 3 //~ E0208
type = 3 //~ E0208
x.to := 3 //~ E0208
proc from() { } //~ E0208
receive on from c //~ E0208
----
length = 3 //~ E0208
f(length, length[1])
length := 4
"#,
    );
}

#[test]
fn procedures() {
    check_all(
        r#"
proc f(integer a, integer b) { } //~ E0215
proc f(integer a, integer b, real c) { } //~ E0215
proc f(a, b) { x = 1 y = 2 } //~ E0240 E0201
proc f { } //~ E0210
proc f() -> integer { return 1 } //~ E0218
proc f() integer { return 1 } //~ E0210
proc f() { return 3 } //~ E0231
proc f() : integer { return
  3 }
proc f() { return
  g() }
proc (integer a) { } //~ E0207
proc f(integer a { } //~ E0202
proc f(integer length) { } //~ E0208
proc f(integer a = 3) { } //~ E0240
proc f() native hearth_f //~ E0210
f(1; 2) //~ E0210
proc g() { } //~ E0220
proc h() { }
"#,
    );
}

#[test]
fn components() {
    check_all(
        r#"
component C { constructor() { } behaviour { stop } } //~ E0226 E0201
component C presents interface() { constructor() { } ; behaviour { stop } } //~ E0226
component C presents I { } //~ E0223
component C presents I { constructor() { } } //~ E0223
component C presents I { behaviour { } } //~ E0223
component C presents I { constructor() { } ; n = 0 ; m = 1 ; behaviour { stop } } //~ E0221
component C presents I { behaviour { stop } ; constructor() { } } //~ E0221
component C presents I { constructor() { } ; behaviour { } ; behaviour { } } //~ E0222
component C presents I { n ; constructor() { } ; behaviour { } } //~ E0224
component C presents I { n := 0 ; constructor() { } ; behaviour { } } //~ E0225
component C presents I { integer n = 0 ; constructor() { } ; behaviour { } } //~ E0216
component C presents I { connect a to b ; constructor() { } ; behaviour { } } //~ E0225
component C presents I { constructor() { } ; behavior { stop } } //~ E0219
component C presents I { constructor() { } ; behaviour() { stop } } //~ E0210
component C presents I { constructor { } ; behaviour { stop } } //~ E0210
component C presents I { ) ; constructor() { } ; behaviour { stop } } //~ E0206
component C presents I { a = 1 b = 2 ; constructor() { } ; behaviour { stop } } //~ E0201
component presents I { constructor() { } ; behaviour { stop } } //~ E0208
x = 1
----
behaviour { stop } //~ E0241
----
proc f() {
    proc g() { } //~ E0227
    x = 1
}
{
    proc h() { } //~ E0227
    component C presents I { constructor() { } ; behaviour { } } //~ E0227
}
"#,
    );
}

/// A mistake inside a nested block hides nothing around it.
#[test]
fn several_mistakes() {
    check_all(
        r#"
type I is interface(in integer)  //~ E0240
component C presents I {
    n = 1 +  //~ E0205
    m = (2  //~ E0202
    proc f(integer a) : integer { return a ++ }  //~ E0218
    constructor() { x = }  //~ E0205
    behaviour {
        select {
            receive x form c: { f(x) }  //~ E0210
            receive y from c: { f(y }  //~ E0202
        }
        if a then { b := } else { c = 1 d = 2 }  //~ E0205 E0201
        stop
    }
}
x = new C(x))  //~ E0203
y = f(x,)  //~ E0205
"#,
    );
}
