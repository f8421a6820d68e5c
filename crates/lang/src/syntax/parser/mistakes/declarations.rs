//! Diagnostics for mistakes in declarations, in components and in their parts.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{MemberDeclaration, Name};
use crate::syntax::habits;
use crate::syntax::parser::{Failed, Parse, Parser, Returns};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    pub(in crate::syntax::parser) fn declaration_after_statement(&mut self, statement: Span) {
        let what = match self.kind() {
            Kind::Proc => "procedure",
            _ => "component",
        };
        let diagnostic = Diagnostic::error(
            codes::DECLARATION_AFTER_STATEMENT,
            format!("a {what} is declared after a statement"),
            self.here(),
            "declarations come before all statements",
        )
        .with_label(statement, "the first statement")
        .with_help("move the statements to the end of the file");
        self.report(diagnostic);
    }

    /// `type T = integer`, `type T integer`: continues if a type follows.
    pub(in crate::syntax::parser) fn is_expected(&mut self) -> Parse<()> {
        let stands_for_is = matches!(
            self.kind(),
            Kind::Equals | Kind::Assign | Kind::Colon | Kind::As
        );
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`is`")
            .with_help("a type is declared by `type Name is struct(integer x, y)`");
        let failed = self.fails(diagnostic);
        if stands_for_is {
            self.bump();
        }
        if self.kind().begins_type() {
            Ok(())
        } else {
            Err(failed)
        }
    }

    /// `proc f() -> integer`
    pub(in crate::syntax::parser) fn arrow_for_result(&mut self) {
        let first = self.bump();
        self.bump();
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_OPERATOR,
            "there is no operator `->`",
            self.span_from(first),
            "`:` belongs here",
        );
        self.report(diagnostic.with_help("the result type follows a colon: `proc f() : integer`"));
    }

    /// Whether a result type follows the parameters right away: `proc f() integer {`.
    pub(in crate::syntax::parser) fn result_without_colon(&self) -> bool {
        let named = self.kind() == Kind::Name
            && matches!(self.kind_ahead(1), Kind::OpenBrace | Kind::OpenBracket);
        self.continues() && (named || self.kind().is_type_keyword())
    }

    pub(in crate::syntax::parser) fn colon_before_result(&mut self) {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`:` before the result type")
            .with_help("write `proc f() : integer { … }`");
        self.complain(diagnostic);
    }

    pub(in crate::syntax::parser) fn params_expected(&mut self, after: &str) -> Failed {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, &format!("`(` after {after}"))
            .with_help("an empty list of parameters is written `()`");
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn body_expected(&mut self, of: &str, head: Span) {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`{`")
            .with_label(head, format!("this {of} needs a body, `{{ … }}`"));
        let diagnostic = if self.at_native() {
            diagnostic.with_note("Only the standard environment declares native procedures.")
        } else {
            diagnostic
        };
        self.complain(diagnostic);
    }

    fn at_native(&self) -> bool {
        let token = self.token();
        token.kind == Kind::Name && self.spelling(token) == "native"
    }

    pub(in crate::syntax::parser) fn component_brace_expected(&mut self, name: Span) {
        let reported = self
            .diagnostics
            .last()
            .is_some_and(|last| last.is_error() && last.primary.span.start >= name.start);
        if !reported {
            let diagnostic = self
                .expected(codes::WORD_EXPECTED, "`{`")
                .with_label(name, "the parts of this component belong in braces");
            self.complain(diagnostic);
        }
    }

    /// Goes on if the body follows, or the names.
    pub(in crate::syntax::parser) fn presents_expected(&mut self, component: Name) -> Parse<()> {
        let name = &self.text[component.span.start as usize..component.span.end as usize];
        let diagnostic = Diagnostic::error(
            codes::BAD_PRESENTS,
            format!("component `{name}` presents no interface"),
            self.gap(),
            "`presents` and an interface belong here",
        )
        .with_help("declare an interface, `type IName is interface()`, and add `presents IName`");
        let failed = self.fails(diagnostic);
        if self.kind() == Kind::OpenBrace {
            Ok(())
        } else {
            Err(failed)
        }
    }

    pub(in crate::syntax::parser) fn unnamed_interface(&mut self) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::BAD_PRESENTS,
            "`presents` needs the name of an interface",
            self.here(),
            "a name of an interface belongs here",
        )
        .with_help("declare it first, `type IName is interface(…)`, and present `IName`");
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn incomplete_component(
        &mut self,
        name: Name,
        constructor: bool,
        behaviour: bool,
    ) {
        let lacking = match (constructor, behaviour) {
            (true, true) => "neither constructor nor behaviour",
            (true, false) => "no constructor",
            _ => "no behaviour",
        };
        let help = match (constructor, behaviour) {
            (true, true) => {
                "add `constructor() { }` and `behaviour { … }` at the end of the component"
            }
            (true, false) => "add `constructor() { }` before the behaviour",
            _ => "add `behaviour { … }` at the end; `behaviour { stop }` ends at once",
        };
        let spelling = &self.text[name.span.start as usize..name.span.end as usize];
        let diagnostic = Diagnostic::error(
            codes::INCOMPLETE_COMPONENT,
            format!("component `{spelling}` has {lacking}"),
            name.span,
            "every component needs both",
        );
        self.report(diagnostic.with_help(help));
    }

    pub(in crate::syntax::parser) fn second_behaviour(&mut self, second: Span, first: Span) {
        let diagnostic = Diagnostic::error(
            codes::SECOND_BEHAVIOUR,
            "a component has one behaviour only",
            second,
            "a second behaviour",
        )
        .with_label(first, "the first behaviour");
        self.report(diagnostic.with_help("join the two, or make two components"));
    }

    pub(in crate::syntax::parser) fn behaviour_with_parens(&mut self) {
        let open = self.bump();
        self.bump();
        let diagnostic = Diagnostic::error(
            codes::WORD_EXPECTED,
            "expected `{` after `behaviour`, found `(`",
            self.span_from(open),
            "a behaviour has no parameters",
        );
        self.report(diagnostic.with_help("write `behaviour { … }`"));
    }

    pub(in crate::syntax::parser) fn parts_out_of_order(&mut self, late: Token, earlier: Span) {
        let (title, label) = if late.kind == Kind::Constructor {
            ("a constructor follows the behaviour", "the behaviour")
        } else if self.text[earlier.start as usize..].starts_with("behaviour") {
            ("a member follows the behaviour", "the behaviour")
        } else {
            ("a member follows a constructor", "the constructor")
        };
        let diagnostic = Diagnostic::error(
            codes::PARTS_OUT_OF_ORDER,
            title,
            self.span_of(late),
            "too late",
        )
        .with_label(earlier, label)
        .with_help("a component has its members first, then constructors, then the behaviour");
        self.report(diagnostic);
    }

    pub(in crate::syntax::parser) fn declaration_in_body(&mut self) {
        let what = self.kind().text();
        let (title, help) = if what == "proc" {
            (
                "a procedure cannot be declared inside a body",
                "move it out: procedures are members of components or declared at the top of the file",
            )
        } else {
            (
                "a component cannot be declared inside another or a body",
                "move it to the top of the file",
            )
        };
        let diagnostic = Diagnostic::error(
            codes::DECLARATION_IN_BODY,
            title,
            self.here(),
            "not possible here",
        );
        self.report(diagnostic.with_help(help));
    }

    /// `constructor` or `behaviour` at the level of the file: read and dropped.
    pub(in crate::syntax::parser) fn part_outside_component(&mut self) {
        let first = self.bump();
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            let diagnostic = Diagnostic::error(
                codes::PART_OUTSIDE_COMPONENT,
                format!("`{}` outside a component", first.kind.text()),
                self.span_of(first),
                "only components have one",
            );
            let help = "put it into `component Name presents Interface { … }`; \
                        if it is in one, a `}` closes it too early";
            self.report(diagnostic.with_help(help));
        }
        self.recover_head(0);
        if self.kind() == Kind::OpenBrace {
            let _dropped = self.body(Returns::Misplaced, "part", self.span_of(first), true);
        }
    }

    /// `behavior {`, `construct() {`
    pub(in crate::syntax::parser) fn misspelt_part(&mut self) -> bool {
        let token = self.token();
        let meant = match habits::similar_keyword(self.spelling(token)) {
            Some("behaviour") if self.kind_ahead(1) == Kind::OpenBrace => "behaviour",
            Some("constructor") if self.kind_ahead(1) == Kind::OpenParen => "constructor",
            _ => return false,
        };
        self.misspelt(token, meant);
        true
    }

    pub(in crate::syntax::parser) fn misspelt(&mut self, token: Token, meant: &str) {
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_WORD,
            format!("unknown word `{}`", self.spelling(token)),
            self.span_of(token),
            format!("did you mean `{meant}`?"),
        );
        self.report(diagnostic.with_help(format!("write `{meant}`")));
    }

    /// Something in a component that is neither member nor constructor nor behaviour.
    pub(in crate::syntax::parser) fn no_member(
        &mut self,
        members: &mut Vec<MemberDeclaration>,
    ) -> Parse<()> {
        let token = self.token();
        if self.names_reserved_word() {
            return Err(self.reserved_word_declared());
        }
        let typed = token.kind.is_type_keyword()
            || (token.kind == Kind::Name && self.kind_ahead(1) == Kind::Name);
        if typed {
            for (name, value) in self.typed_variable()? {
                let member = self.faulty_member(name, value);
                members.push(member);
            }
            return Ok(());
        }
        if token.kind == Kind::Name && self.kind_ahead(1) == Kind::Assign {
            return self.member_assigned(members);
        }
        let ends = self.tokens.get(self.at + 1).is_none_or(|next| {
            next.after_break || matches!(next.kind, Kind::Semicolon | Kind::CloseBrace | Kind::End)
        });
        if token.kind == Kind::Name && ends {
            self.bump();
            let name = self.name_of(token);
            self.member_without_value(name);
            let member = self.faulty_member(name, None);
            members.push(member);
            return Ok(());
        }
        if token.kind.begins_clause() {
            return self.statement_among_members(token);
        }
        Err(self.begins_nothing("a member, constructor or behaviour"))
    }

    fn member_without_value(&mut self, name: Name) {
        let spelling = &self.text[name.span.start as usize..name.span.end as usize];
        let diagnostic = Diagnostic::error(
            codes::MEMBER_WITHOUT_VALUE,
            format!("the member `{spelling}` has no value"),
            name.span,
            "a value is missing after this",
        );
        self.report(diagnostic.with_help(format!(
            "give it one, which also gives it its type: `{spelling} = 0`"
        )));
    }

    /// `n := 0` as a member: taken as `n = 0`.
    fn member_assigned(&mut self, members: &mut Vec<MemberDeclaration>) -> Parse<()> {
        let name = self.bump();
        let sign = self.bump();
        let diagnostic = Diagnostic::error(
            codes::STATEMENT_AMONG_MEMBERS,
            "an assignment among the members of a component",
            self.span_of(sign),
            "a member is declared with `=`",
        );
        self.report(
            diagnostic.with_help("declare with `=`; assign in the constructor or the behaviour"),
        );
        let value = self.clause()?;
        let member = self.faulty_member(self.name_of(name), Some(value));
        members.push(member);
        Ok(())
    }

    /// Read for the mistakes in it, and dropped.
    fn statement_among_members(&mut self, first: Token) -> Parse<()> {
        let diagnostic = Diagnostic::error(
            codes::STATEMENT_AMONG_MEMBERS,
            "a statement among the members of a component",
            self.span_of(first),
            "only declarations are allowed here",
        );
        self.complain(diagnostic.with_help("move it into the constructor or the behaviour"));
        self.statement_into(&mut Vec::new());
        Ok(())
    }
}
