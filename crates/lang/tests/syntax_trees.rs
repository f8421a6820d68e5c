//! The trees of every form of the language, as S-expressions.

use hearth_lang::source::{SourceId, Span};
use hearth_lang::symbol::Interner;
use hearth_lang::syntax::ast::{Expr, ExprKind, Unit};
use hearth_lang::syntax::{Dialect, parse, print};

fn tree_in(dialect: Dialect, text: &str) -> String {
    let mut names = Interner::default();
    let parsed = parse(text, SourceId::USER, &mut names, dialect);
    assert!(
        parsed.diagnostics.is_empty(),
        "{text}: {:#?}",
        parsed.diagnostics
    );
    print::unit(&parsed.unit, &names).trim_end().to_owned()
}

fn tree(text: &str) -> String {
    tree_in(Dialect::Program, text)
}

/// Pairs of a text and its tree.
fn trees(pairs: &[(&str, &str)]) {
    for (text, expected) in pairs {
        assert_eq!(tree(text), *expected, "of {text:?}");
    }
}

#[test]
fn literals() {
    trees(&[
        ("42", "42"),
        ("2147483647", "2147483647"),
        ("$42", "$42"),
        ("#255", "#255"),
        ("1.5", "1.5"),
        ("2.8e-6", "2.8e-6"),
        ("1.0e3", "1000.0"),
        ("5e3", "5000.0"),
        ("true", "true"),
        ("false", "false"),
        (r#""a\tb\"\x41\101\\""#, r#""a\tb\"AA\\""#),
        (r#""größer""#, r#""größer""#),
    ]);
}

#[test]
fn operators() {
    trees(&[
        ("a + b * c", "(+ a (* b c))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a or b and c", "(or a (and b c))"),
        ("a | b ^ c & d == e", "(| a (^ b (& c (== d e))))"),
        ("a < b + 1", "(< a (+ b 1))"),
        ("a and b or c and d", "(or (and a b) (and c d))"),
        ("a * b + c * d % e", "(+ (* a b) (% (* c d) e))"),
        ("!a == b", "(== (! a) b)"),
        ("x != -1", "(!= x (- 1))"),
        ("- -x + +y", "(+ (- (- x)) (+ y))"),
        ("~a.b(1)[2]", "(~ (index (call (field a b) 1) 2))"),
        ("(a + b) * c", "(* (paren (+ a b)) c)"),
        ("a\n- b", "a\n(- b)"),
        ("a -\n b", "(- a b)"),
        ("(a\n- b)", "(paren (- a b))"),
        ("f(a\n- b, c\n(d))", "(call f (- a b) (call c d))"),
        ("f({ a\n- b })", "(call f (block a (- b)))"),
        ("a[i\n+ 1]", "(index a (+ i 1))"),
    ]);
}

#[test]
fn places() {
    trees(&[
        ("a[1, 2][3]", "(index (index a 1 2) 3)"),
        ("a.length", "(length a)"),
        ("a[0].length", "(length (index a 0))"),
        ("f(x).y", "(field (call f x) y)"),
        ("f()", "(call f)"),
        ("f\n(x)", "f\n(paren x)"),
        ("\"text\".length", "(length \"text\")"),
        ("(a).length", "(length (paren a))"),
        ("a.b := c.d := e", "(:= (field a b) (:= (field c d) e))"),
        ("x = y = 1", "(= x (= y 1))"),
    ]);
}

#[test]
fn separators() {
    trees(&[
        ("a = 1 ; b = 2;;\n;c = 3", "(= a 1)\n(= b 2)\n(= c 3)"),
        (
            "a = 1\r\nb = 2\rc = 3\x0cd = 4",
            "(= a 1)\n(= b 2)\n(= c 3)\n(= d 4)",
        ),
        ("a = 1 /* no\nbreak */ ; b = 2", "(= a 1)\n(= b 2)"),
        ("{ a ; b }", "(block a b)"),
        ("{ }", "(block)"),
        ("x = 1 // the end", "(= x 1)"),
        ("", ""),
    ]);
}

#[test]
fn choices() {
    trees(&[
        ("if a then b", "(if a b)"),
        ("if a\nthen b\nelse c", "(if a b c)"),
        ("if a then if b then c else d", "(if a (if b c d))"),
        ("if a then b else if c then d else e", "(if a b (if c d e))"),
        ("x = if a then 1 else 2", "(= x (if a 1 2))"),
        (
            "case n of 1: a 2, 3: b default: c",
            "(case n ([1] a) ([2 3] b) c)",
        ),
        (
            "case n\nof\n1: a ;\n2: -b\ndefault: c",
            "(case n ([1] a) ([2] (- b)) c)",
        ),
        ("case n of default: c", "(case n c)"),
        (
            "case a of red: case b of 1: x default: y default: z",
            "(case a ([red] (case b ([1] x) y)) z)",
        ),
        (
            "project any(x) as y onto integer: a integer[]: b T: c default: d",
            "(project (any x) y (integer a) ((array integer) b) (T c) d)",
        ),
        (
            "project b as f onto proc(integer) : { } proc() : bool : g() default: { }",
            "(project b f ((proc [integer]) (block)) ((proc [] bool) (call g)) (block))",
        ),
    ]);
}

#[test]
fn loops() {
    trees(&[
        ("for i = 0..9 do f(i)", "(for i 0 9 1 (call f i))"),
        (
            "for i = 0 .. n - 1 : -2\ndo { }",
            "(for i 0 (- n 1) -2 (block))",
        ),
        ("for i = a.length..0 : +3 do b", "(for i (length a) 0 3 b)"),
    ]);
}

#[test]
fn messages() {
    trees(&[
        ("connect a.b to c[1]", "(connect (field a b) (index c 1))"),
        (
            "connect \"a\" on n to \"b\" on m",
            "(connect (on \"a\" n) (on \"b\" m))",
        ),
        ("disconnect a", "(disconnect a)"),
        ("disconnect \"a\" on $3", "(disconnect (on \"a\" $3))"),
        ("publish c as \"c\"", "(publish c \"c\")"),
        ("send 1 + 2 on a.b", "(send (+ 1 2) (field a b))"),
        ("receive x from f(1)", "(receive x (call f 1))"),
        (
            "acknowledge x from c after { }",
            "(acknowledge x c (block))",
        ),
        (
            "select { receive a from b when c : d ; acknowledge e from f\nafter : g default: h }",
            "(select (receive a b (when c) d) (acknowledge e f g) (default h))",
        ),
        (
            "select { acknowledge e from f when g after: h }",
            "(select (acknowledge e f (when g) h))",
        ),
        ("select { }", "(select)"),
    ]);
}

#[test]
fn leaving() {
    trees(&[
        ("stop x", "(stop x)"),
        ("stop\nx", "(stop)\nx"),
        ("stop; y := 1", "(stop)\n(:= y 1)"),
        ("throw E", "(throw E)"),
        (
            "try a except E b except c except { d }",
            "(try a (except E b) (except c) (except (block d)))",
        ),
        ("try a\nexcept f(1)", "(try a (except (call f 1)))"),
        (
            "try { try a except b } except E -1",
            "(try (block (try a (except b))) (except E (- 1)))",
        ),
        (
            "proc f() { return\na = 1 }",
            "(proc f [] (block (return) (= a 1)))",
        ),
        (
            "proc f() : integer { return\n1 }",
            "(proc f [] : integer (block (return 1)))",
        ),
    ]);
}

#[test]
fn creation() {
    trees(&[
        ("new in integer[]", "(new (in (array integer)))"),
        ("new out in bool", "(new (out (in bool)))"),
        ("new C()", "(new C [])"),
        ("new P(1, any(2))", "(new P [1 (any 2)])"),
        (
            "new integer[2][3] of 0 + 1",
            "(new-array integer 2 3 (+ 0 1))",
        ),
        ("new P[2] of new P(1)", "(new-array P 2 (new P [1]))"),
        ("new any[1] of any(1)", "(new-array any 1 (any 1))"),
    ]);
}

#[test]
fn types() {
    trees(&[
        ("type T is integer[][]", "(type T (array (array integer)))"),
        ("type T is in out bool", "(type T (in (out bool)))"),
        ("type T is interface()", "(type T (interface))"),
        (
            "type T is interface(in integer a, b; out U c;)",
            "(type T (interface (in (integer a b)) (out (U c))))",
        ),
        (
            "type T is struct(integer a, b\nstring[] c;\nin bool d)",
            "(type T (struct (integer a b) ((array string) c) ((in bool) d)))",
        ),
        ("type T is enum(a, b)", "(type T (enum a b))"),
        (
            "type T is proc(integer; byte[]) : any",
            "(type T (proc [integer (array byte)] any))",
        ),
        ("type T is proc()", "(type T (proc []))"),
        ("x = 1 ; type T is bool", "(= x 1)\n(type T bool)"),
        ("{ type T is bool }", "(block (type T bool))"),
    ]);
}

#[test]
fn declarations() {
    trees(&[
        (
            "proc f(integer a, b\n real c) : integer[] { return a }",
            "(proc f [(integer a b) (real c)] : (array integer) (block (return a)))",
        ),
        (
            "component C presents I, J {
                n = 0 ; type T is bool
                proc f() { }
                constructor() { }
                constructor(integer n) { } ; behaviour { stop } ;
             }",
            "(component C [I J] (= n 0) (type T bool) (proc f [] (block)) \
             (constructor [] (block)) (constructor [(integer n)] (block)) \
             (behaviour (block (stop))))",
        ),
        (
            "component C presents I { constructor() { }\nbehaviour { } }\nx = 1",
            "(component C [I] (constructor [] (block)) (behaviour (block)))\n(= x 1)",
        ),
        // Ordinary names here, keywords elsewhere.
        (
            "end = class = while = not = xor = start = break = int = null = this = double",
            "(= end (= class (= while (= not (= xor (= start (= break (= int (= null \
             (= this double))))))))))",
        ),
        ("native = blocks", "(= native blocks)"),
    ]);
}

#[test]
fn native_procedures() {
    let text = "proc printInt(integer n) native hearth_print_int
        proc wait(in bool c) : bool native hearth_wait blocks raises
        proc native() { }";
    assert_eq!(
        tree_in(Dialect::Prelude, text),
        "(proc printInt [(integer n)] (native hearth_print_int))\n\
         (proc wait [((in bool) c)] : bool (native hearth_wait blocks raises))\n\
         (proc native [] (block))"
    );
}

/// The spans of an expression lie inside one another.
#[test]
fn spans_nest() {
    let text = "x = f(a[1].b + -2, \"s\", (c)) ; send any(x) on y.z";
    let mut names = Interner::default();
    let parsed = parse(text, SourceId::USER, &mut names, Dialect::Program);
    let at = |span: Span| &text[span.start as usize..span.end as usize];
    let Unit { statements, .. } = &parsed.unit;
    assert_eq!(at(statements[0].span), "x = f(a[1].b + -2, \"s\", (c))");
    assert_eq!(at(statements[1].span), "send any(x) on y.z");
    let ExprKind::Declare(name, value) = &statements[0].kind else {
        panic!("{statements:?}");
    };
    assert_eq!(at(name.span), "x");
    let ExprKind::Call(callee, args) = &value.kind else {
        panic!("{value:?}");
    };
    assert_eq!(at(callee.span), "f");
    let spans: Vec<&str> = args.iter().map(|arg: &Expr| at(arg.span)).collect();
    assert_eq!(spans, ["a[1].b + -2", "\"s\"", "(c)"]);
}
