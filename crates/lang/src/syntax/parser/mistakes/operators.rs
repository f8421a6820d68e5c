//! Diagnostics for mistakes in operators and operands.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};
use crate::syntax::parser::expressions::is_binary_operator;
use crate::syntax::parser::{Failed, Parse, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// Nothing at the cursor can be an operand.
    pub(in crate::syntax::parser) fn no_operand(&mut self) -> Parse<Expr> {
        let kind = self.kind();
        if self.names_reserved_word() && self.gap() == self.here() {
            return Err(self.reserved_word_declared());
        }
        if self.reported_words.contains(&kind) {
            let word = self.bump();
            return self.postfix(self.error_expr(self.span_of(word)));
        }
        let on_line = self.continues();
        match kind {
            Kind::If | Kind::Case | Kind::Select | Kind::Project if on_line => {
                self.needs_parentheses()
            }
            Kind::Dot if self.kind_ahead(1) == Kind::Integer => {
                let diagnostic = Diagnostic::error(
                    codes::EXPRESSION_EXPECTED,
                    "a number cannot begin with its point",
                    self.here(),
                    "digits are missing before this",
                );
                Err(self.fails(diagnostic.with_help("write `0.5`, with digits on both sides")))
            }
            _ => {
                let mut diagnostic = self.expected(codes::EXPRESSION_EXPECTED, "an expression");
                if let Some(previous) = self.previous().filter(|previous| {
                    is_binary_operator(previous.kind) && self.gap() != self.here()
                }) {
                    diagnostic.primary.text =
                        format!("`{}` lacks its right side", previous.kind.text());
                }
                if matches!(kind, Kind::CloseBrace | Kind::CloseParen) && self.opens_nothing() {
                    diagnostic.primary.text = "an expression is missing before this".to_owned();
                }
                Err(self.fails(diagnostic))
            }
        }
    }

    fn opens_nothing(&self) -> bool {
        self.previous()
            .is_some_and(|previous| matches!(previous.kind, Kind::OpenParen | Kind::Comma))
    }

    /// `1 + if …`: it is read as if the parentheses were there.
    fn needs_parentheses(&mut self) -> Parse<Expr> {
        let first = self.token();
        let diagnostics = self.diagnostics.len();
        let clause = self.clause()?;
        if self.diagnostics.len() == diagnostics {
            let word = first.kind.text();
            let diagnostic = Diagnostic::error(
                codes::NEEDS_PARENTHESES,
                format!("`{word}` as an operand needs parentheses"),
                self.span_of(first),
                "this begins a clause inside an expression",
            );
            self.report(diagnostic.with_help(format!("write `({word} …)`")));
        }
        Ok(clause)
    }

    /// Two marks that touch and are one operator elsewhere. The first was read as `op`.
    pub(in crate::syntax::parser) fn foreign_operator(&mut self, op: BinaryOp) -> Parse<BinaryOp> {
        let second = self.kind();
        let suspicious = matches!(
            second,
            Kind::Plus
                | Kind::Minus
                | Kind::Ampersand
                | Kind::Bar
                | Kind::Star
                | Kind::Less
                | Kind::Greater
                | Kind::Equals
                | Kind::EqualEqual
                | Kind::GreaterEqual
                | Kind::Colon
        );
        if !suspicious || !self.touches_previous() {
            return Ok(op);
        }
        self.foreign_pair(op, second)
    }

    fn foreign_pair(&mut self, op: BinaryOp, second: Kind) -> Parse<BinaryOp> {
        use BinaryOp::*;
        let (help, meant) = match (op, second) {
            (BitAnd, Kind::Ampersand) => ("logical and is written `and`", Some(And)),
            (BitOr, Kind::Bar) => ("logical or is written `or`", Some(Or)),
            (Equal, Kind::Equals) => ("equality is written `==`", Some(Equal)),
            (NotEqual, Kind::Equals) => ("inequality is written `!=`", Some(NotEqual)),
            (Less, Kind::Greater) => ("inequality is written `!=`", Some(NotEqual)),
            (Add, Kind::Plus) | (Subtract, Kind::Minus) => {
                let after = self.kind_ahead(1);
                let ends_here = self
                    .tokens
                    .get(self.at + 1)
                    .is_some_and(|token| token.after_break)
                    || !after.begins_expression();
                if !ends_here {
                    return Ok(op);
                }
                let sign = if op == Add { '+' } else { '-' };
                let name = self.operand_name();
                let help = format!("write `{name} := {name} {sign} 1`");
                return Err(self.foreign(&help));
            }
            (Add | Subtract | Multiply | Divide | Remainder, Kind::Equals)
            | (BitAnd | BitOr | BitXor, Kind::Equals) => {
                let sign = self.previous().map_or("", |previous| previous.kind.text());
                let name = self.operand_name();
                let help = format!("write `{name} := {name} {sign} …`");
                return Err(self.foreign(&help));
            }
            (Subtract, Kind::Greater) => ("a field is written `p.x`", None),
            (Less, Kind::Less) => ("there are no shifts; multiply by a power of two", None),
            (Greater, Kind::Greater | Kind::GreaterEqual) => {
                ("there are no shifts; divide by a power of two", None)
            }
            (Multiply, Kind::Star) => ("there are no powers; multiply several times", None),
            _ => return Ok(op),
        };
        let failed = self.foreign(help);
        match meant {
            Some(meant) => {
                self.bump();
                Ok(meant)
            }
            None => Err(failed),
        }
    }

    /// The name before the operator just read, for showing what to write.
    fn operand_name(&self) -> &str {
        match self.at.checked_sub(2).map(|at| self.tokens[at]) {
            Some(token) if token.kind == Kind::Name => self.spelling(token),
            _ => "x",
        }
    }

    /// Reports the two marks before and at the cursor as one unknown operator.
    fn foreign(&mut self, help: &str) -> Failed {
        let second = self.token();
        let first = self.previous().unwrap_or(second);
        let span = self.span_of(first).to(self.span_of(second));
        let operator = &self.text[span.start as usize..span.end as usize];
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_OPERATOR,
            format!("there is no operator `{operator}`"),
            span,
            "not an operator of Insense",
        );
        self.report(diagnostic.with_help(help));
        Failed
    }

    /// `=>` and `=<` after a name: the `=` was read as that of a declaration.
    pub(in crate::syntax::parser) fn foreign_equals(&mut self, equals: Token) -> Parse<()> {
        let second = self.token();
        let help = match second.kind {
            Kind::Greater => "at least is written `>=`",
            Kind::Less => "at most is written `<=`",
            _ => return Ok(()),
        };
        if equals.end != second.start {
            return Ok(());
        }
        Err(self.foreign(help))
    }

    /// `a.x = 3`, `f(x) = 3`, `1 = 2`
    pub(in crate::syntax::parser) fn equals_for_assign(&mut self, target: &Expr) -> Parse<()> {
        let (label, help) = match target.kind {
            ExprKind::Field(..) | ExprKind::Index(..) | ExprKind::Length(_) => (
                "`=` declares a new variable, which has a plain name",
                "assign to a field or an element with `:=`",
            ),
            _ => (
                "`=` declares a new variable, so a name must come before it",
                "comparison is written `==`, assignment `:=`",
            ),
        };
        let diagnostic = Diagnostic::error(
            codes::EQUALS_FOR_ASSIGN,
            "`=` after something other than a name",
            self.here(),
            label,
        );
        self.complain(diagnostic.with_help(help));
        Ok(())
    }

    /// A statement that begins with an operator, `.` or `[`.
    pub(in crate::syntax::parser) fn operator_begins_line(&mut self) -> Failed {
        let token = self.token();
        let text = token.kind.text();
        let mut diagnostic = Diagnostic::error(
            codes::OPERATOR_BEGINS_LINE,
            format!("`{text}` cannot begin a statement"),
            self.span_of(token),
            "the statement before ended with its line",
        );
        if let Some(previous) = self.previous().filter(|_| token.after_break) {
            let end: Span = self.span_of(previous).after();
            let help = match token.kind {
                Kind::Dot | Kind::OpenBracket => {
                    format!("put `{text}` on the line of what it belongs to")
                }
                _ => {
                    format!("end the line before with `{text}`; then the expression continues here")
                }
            };
            diagnostic = diagnostic.with_label(end, "here").with_help(help);
        }
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn any_without_value(&mut self, any: Token) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::EXPRESSION_EXPECTED,
            format!("expected `(` after `any`, found {}", self.found()),
            self.gap(),
            "the value to box belongs here, in parentheses",
        )
        .with_label(self.span_of(any), "`any(e)` boxes the value of `e`");
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn index_expected(&mut self) -> Failed {
        let mut diagnostic = self.expected(codes::EXPRESSION_EXPECTED, "an index");
        diagnostic.primary.text = "the brackets are empty".to_owned();
        self.fails(diagnostic)
    }

    /// `f(1; 2)`: taken as a comma.
    pub(in crate::syntax::parser) fn semicolon_for_comma(&mut self) -> bool {
        let next = self.tokens.get(self.at + 1).copied();
        let meant = next.is_some_and(|next| next.kind.begins_expression() && !next.after_break);
        if meant {
            let diagnostic = Diagnostic::error(
                codes::WORD_EXPECTED,
                "expected `,` between arguments, found `;`",
                self.here(),
                "a comma belongs here",
            );
            self.report(
                diagnostic
                    .with_note("Groups of parameters are separated by `;`, arguments by commas."),
            );
        }
        meant
    }
}
