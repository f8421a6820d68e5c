//! The file as a whole, type declarations and procedures.

use super::{Parse, Parser, Returns};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::syntax::Dialect;
use crate::syntax::ast::{
    Block, Declaration, Expr, ExprKind, Group, ProcBody, ProcDeclaration, Type, TypeDeclaration,
    TypeKind, Unit,
};
use crate::syntax::token::{Kind, Token};

/// Progress of parsing a file.
#[derive(Default)]
struct Order {
    /// The first statement that could be read: declarations come before it.
    first_statement: Option<Span>,
    /// A declaration that comes too late was reported already.
    reported: bool,
}

impl Parser<'_> {
    pub(in crate::syntax) fn unit(&mut self) -> Unit {
        let mut unit = Unit::default();
        let mut order = Order::default();
        loop {
            self.skip_semicolons();
            match self.kind() {
                Kind::End => return unit,
                Kind::CloseBrace => self.surplus_brace(),
                Kind::Type if order.first_statement.is_none() && !self.names_reserved_word() => {
                    let declaration = self.type_declaration();
                    self.keep(&mut unit, declaration.map(Declaration::Type));
                }
                Kind::Proc => {
                    self.check_order(&mut order);
                    let declaration = self.proc_declaration();
                    self.keep(&mut unit, declaration.map(Declaration::Proc));
                }
                Kind::Component => {
                    self.check_order(&mut order);
                    let declaration = self.component();
                    self.keep(&mut unit, declaration.map(Declaration::Component));
                }
                Kind::Constructor | Kind::Behaviour => self.part_outside_component(),
                _ => {
                    let known = unit.statements.len();
                    self.statement_into(&mut unit.statements);
                    if order.first_statement.is_none() {
                        order.first_statement = unit.statements[known..]
                            .iter()
                            .find(|statement| !matches!(statement.kind, ExprKind::Error))
                            .map(|statement| statement.span);
                    }
                }
            }
        }
    }

    /// Declarations come before statements. Said once: moving the statement mends it.
    fn check_order(&mut self, order: &mut Order) {
        let Some(statement) = order.first_statement else {
            return;
        };
        if !std::mem::replace(&mut order.reported, true) {
            self.declaration_after_statement(statement);
        }
    }

    /// Enters a declaration, or continues after a broken one.
    fn keep(&mut self, unit: &mut Unit, declaration: Parse<Declaration>) {
        match declaration {
            Ok(declaration) => {
                unit.declarations.push(declaration);
                self.separate();
            }
            Err(_) => self.recover_declaration(),
        }
    }

    /// `type ID is type`
    pub(super) fn type_declaration(&mut self) -> Parse<TypeDeclaration> {
        let first = self.bump();
        let name = self.name("the new type")?;
        let parens = self.parens;
        let ty = self.is_type();
        let ty = ty.unwrap_or_else(|_| {
            let opened = std::mem::replace(&mut self.parens, parens).saturating_sub(parens);
            self.recover_parens(opened);
            self.recover(0);
            Type {
                kind: TypeKind::Error,
                span: name.span,
            }
        });
        Ok(TypeDeclaration {
            name,
            ty,
            span: self.span_from(first),
        })
    }

    fn is_type(&mut self) -> Parse<Type> {
        if !self.eat(Kind::Is) {
            self.is_expected()?;
        }
        self.ty()
    }

    /// `proc ID ( params ) : type body`
    pub(super) fn proc_declaration(&mut self) -> Parse<ProcDeclaration> {
        let first = self.bump();
        let name = self.name("the procedure")?;
        let parens = std::mem::replace(&mut self.parens, 0);
        let head = self.proc_head();
        let opened = std::mem::replace(&mut self.parens, parens);
        let broken = head.is_err();
        let (params, result) = head.unwrap_or_else(|_| {
            self.recover_head(opened);
            (self.unknown_params(), Some(self.unknown_type()))
        });
        let returns = match &result {
            Some(ty) if matches!(ty.kind, TypeKind::Error) => Returns::Misplaced,
            Some(_) => Returns::Value,
            None => Returns::Nothing,
        };
        let body = self.proc_body(returns, name.span, broken);
        Ok(ProcDeclaration {
            name,
            params,
            result,
            body,
            span: self.span_from(first),
        })
    }

    fn proc_head(&mut self) -> Parse<(Vec<Group>, Option<Type>)> {
        let params = self.params("the procedure's name")?;
        let result = match self.kind() {
            Kind::Colon => {
                self.bump();
                Some(self.ty()?)
            }
            Kind::Minus if self.kind_ahead(1) == Kind::Greater => {
                self.arrow_for_result();
                Some(self.ty()?)
            }
            _ if self.result_without_colon() => {
                self.colon_before_result();
                Some(self.ty()?)
            }
            _ => None,
        };
        Ok((params, result))
    }

    /// `( params )`
    pub(super) fn params(&mut self, after: &str) -> Parse<Vec<Group>> {
        if self.kind() != Kind::OpenParen {
            return Err(self.params_expected(after));
        }
        let open = self.bump();
        self.parens += 1;
        self.groups(open)
    }

    fn proc_body(&mut self, returns: Returns, name: Span, broken: bool) -> ProcBody {
        if self.at_word("native") && self.dialect == Dialect::Prelude {
            self.bump();
            return self.native(name);
        }
        ProcBody::Block(self.body(returns, "procedure", name, broken))
    }

    fn at_word(&self, word: &str) -> bool {
        let token = self.token();
        token.kind == Kind::Name && self.spelling(token) == word
    }

    fn native(&mut self, name: Span) -> ProcBody {
        let symbol = if self.kind() == Kind::Name {
            Symbol(self.bump().payload)
        } else {
            let _reported = self.name_expected("the native procedure");
            return ProcBody::Block(empty_block(name.after()));
        };
        let mut flag = |word| {
            let set = self.at_word(word);
            if set {
                self.bump();
            }
            set
        };
        let blocks = flag("blocks");
        let raises = flag("raises");
        ProcBody::Native {
            symbol,
            blocks,
            raises,
        }
    }

    /// The `{ … }` of a procedure, constructor or behaviour; an empty one if it is missing.
    pub(super) fn body(
        &mut self,
        returns: Returns,
        of: &str,
        head: Span,
        head_broken: bool,
    ) -> Block {
        if self.kind() != Kind::OpenBrace {
            if !head_broken {
                self.body_expected(of, head);
                self.recover_head(0);
            }
            if self.kind() != Kind::OpenBrace {
                return empty_block(head.after());
            }
        }
        let outer = std::mem::replace(&mut self.returns, returns);
        let block = self.block();
        self.returns = outer;
        block.unwrap_or_else(|_| empty_block(head.after()))
    }

    fn unknown_type(&self) -> Type {
        Type {
            kind: TypeKind::Error,
            span: self.here(),
        }
    }

    /// Parameters that could not be read: how many there are is unknown.
    pub(super) fn unknown_params(&self) -> Vec<Group> {
        vec![Group {
            ty: self.unknown_type(),
            names: Vec::new(),
        }]
    }

    /// A procedure where none may stand: read and dropped. Returns what stands for it.
    pub(super) fn misplaced_declaration(&mut self, first: Token) -> Expr {
        let read = self.nested(|this| {
            if first.kind == Kind::Proc {
                this.proc_declaration().map(|_| ())
            } else {
                this.component().map(|_| ())
            }
        });
        if read.is_err() {
            if self.token() == first {
                self.bump();
            }
            self.recover_head(0);
            self.recover(0);
        }
        self.error_expr(self.span_from(first))
    }
}

pub(super) fn empty_block(span: Span) -> Block {
    Block {
        statements: Vec::new(),
        span,
    }
}
