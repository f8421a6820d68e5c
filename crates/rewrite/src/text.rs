//! The text form of rules: see `docs/rewrite.md` for the language.

use crate::rule::{
    Assignment, Binary, Expression, Name, Pattern, PatternEdge, PatternVertex, Place, Rule,
    RuleError, Unary,
};
use crate::schema::{Kind, SchemaBuilder, Sort, Value};

/// Nesting of expressions; deeper ones would need a deep stack.
const DEPTH_MAX: usize = 100;

/// A text of rules, read: declared types and rules in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct RuleText {
    /// Types that the text declares.
    pub schema: SchemaBuilder,
    /// Rules.
    pub rules: Vec<Rule>,
}

/// Reads a text of rules.
pub fn read_rules(text: &str) -> Result<RuleText, RuleError> {
    let mut parser = Parser::new(text)?;
    let mut read = RuleText::default();
    loop {
        let token = parser.next();
        match token.word() {
            Some("vertex") => parser.declaration(Sort::Vertex, &mut read.schema)?,
            Some("edge") => parser.declaration(Sort::Edge, &mut read.schema)?,
            Some("rule") => {
                let rule = parser.rule()?;
                let name = &rule.name;
                if read.rules.iter().any(|other| other.name.text == name.text) {
                    let message = format!("there are two rules `{}`: rename one", name.text);
                    return Err(RuleError::new(name.at, message));
                }
                read.rules.push(rule);
            }
            _ if token.kind == TokenKind::End => return Ok(read),
            _ => return Err(token.not("`rule`, `vertex` or `edge`")),
        }
    }
}

/// Reads one expression.
pub(crate) fn expression(text: &str) -> Result<Expression, RuleError> {
    let mut parser = Parser::new(text)?;
    let read = parser.expression(0)?;
    let end = parser.next();
    if end.kind != TokenKind::End {
        return Err(end.not("an operator or the end"));
    }
    Ok(read)
}

#[derive(Clone, Debug, PartialEq)]
enum TokenKind {
    Word(String),
    /// In backquotes: never a keyword.
    Quoted(String),
    Text(String),
    Int(i64),
    Float(f64),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
struct Token {
    kind: TokenKind,
    at: Place,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(&self.kind, TokenKind::Sign(there) if *there == sign)
    }

    fn not(&self, wanted: &str) -> RuleError {
        let found = match &self.kind {
            TokenKind::Word(word) | TokenKind::Quoted(word) => format!("`{word}`"),
            TokenKind::Text(text) => format!("\"{text}\""),
            TokenKind::Int(value) => format!("`{value}`"),
            TokenKind::Float(value) => format!("`{value:?}`"),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::End => "the end of the text".to_owned(),
        };
        RuleError::new(self.at, format!("{found} stands where {wanted} belongs"))
    }
}

/// Longer ones before their beginnings.
const SIGNS: &[&str] = &[
    "<-[", "]->", "-[", "]-", "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "(",
    ")", "{", "}", ":", ";", ",", ".",
];

fn tokens(text: &str) -> Result<Vec<Token>, RuleError> {
    let mut tokens = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let mut rest = content;
        loop {
            rest = rest.trim_start();
            let behind = content.len() - rest.len();
            let column = content[..behind].chars().count() as u32 + 1;
            let at = Place { line, column };
            let Some(first) = rest.chars().next() else {
                break;
            };
            if first == '#' {
                break;
            }
            let (kind, len) = token(rest, first, at)?;
            rest = &rest[len..];
            tokens.push(Token { kind, at });
        }
    }
    let line = text.lines().count().max(1) as u32;
    let column = text.lines().last().map_or(0, |last| last.chars().count()) as u32 + 1;
    tokens.push(Token {
        kind: TokenKind::End,
        at: Place { line, column },
    });
    Ok(tokens)
}

/// The token at the beginning of a text, and its length in bytes.
fn token(rest: &str, first: char, at: Place) -> Result<(TokenKind, usize), RuleError> {
    if first.is_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let word = &rest[..end.unwrap_or(rest.len())];
        return Ok((TokenKind::Word(word.to_owned()), word.len()));
    }
    if first == '`' {
        let inner = &rest[1..];
        return match inner.find('`') {
            Some(end) if end > 0 => Ok((TokenKind::Quoted(inner[..end].to_owned()), end + 2)),
            _ => Err(RuleError::new(
                at,
                "a name in backquotes does not end: close it",
            )),
        };
    }
    if first == '"' {
        return quoted(rest, at);
    }
    if first.is_ascii_digit() {
        return numeral(rest, at);
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((TokenKind::Sign(sign), sign.len())),
        None => {
            let message = format!("`{first}` begins nothing that rules have: take it out");
            Err(RuleError::new(at, message))
        }
    }
}

fn quoted(rest: &str, at: Place) -> Result<(TokenKind, usize), RuleError> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((place, c)) = chars.next() {
        match c {
            '"' => return Ok((TokenKind::Text(text), place + 1)),
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                _ => {
                    let message = "after `\\` a text has `n`, `t`, `\"` or `\\`: write one of them";
                    return Err(RuleError::new(at, message));
                }
            },
            c => text.push(c),
        }
    }
    Err(RuleError::new(
        at,
        "a text does not end on its line: close it with `\"`",
    ))
}

fn numeral(rest: &str, at: Place) -> Result<(TokenKind, usize), RuleError> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let more = bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        from + more.count()
    };
    let mut end = digits(0);
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            end = after;
            is_float = true;
        }
    }
    let word = &rest[..end];
    if is_float {
        let value = word.parse().expect("digits with a point or exponent");
        return Ok((TokenKind::Float(value), end));
    }
    match word.parse() {
        Ok(value) => Ok((TokenKind::Int(value), end)),
        Err(_) => {
            let message = format!("`{word}` is above 9223372036854775807: write a smaller number");
            Err(RuleError::new(at, message))
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Parser, RuleError> {
        let tokens = tokens(text)?;
        Ok(Parser { tokens, next: 0 })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next]
    }

    /// The next token; the end again and again.
    fn next(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = self.peek().is(sign);
        if is {
            self.next();
        }
        is
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = self.peek().word() == Some(word);
        if is {
            self.next();
        }
        is
    }

    fn expect(&mut self, sign: &str) -> Result<(), RuleError> {
        let token = self.next();
        if token.is(sign) {
            return Ok(());
        }
        Err(token.not(&format!("`{sign}`")))
    }

    fn name(&mut self, wanted: &str) -> Result<Name, RuleError> {
        let token = self.next();
        match token.kind {
            TokenKind::Word(text) | TokenKind::Quoted(text) => Ok(Name { text, at: token.at }),
            _ => Err(token.not(wanted)),
        }
    }

    fn declaration(&mut self, sort: Sort, schema: &mut SchemaBuilder) -> Result<(), RuleError> {
        let name = self.name("the name of a type")?;
        let parent = match self.takes(":") {
            true => Some(self.name("the type that it extends")?),
            false => None,
        };
        let mut attributes = Vec::new();
        if self.takes("{") {
            while !self.takes("}") {
                let attribute = self.name("the name of an attribute")?;
                self.expect(":")?;
                let kind = self.next();
                match kind.word().and_then(Kind::from_word) {
                    Some(kind) => attributes.push((attribute.text, kind)),
                    None => return Err(kind.not("`int`, `float`, `bool` or `string`")),
                }
                if !self.takes(",") && !self.peek().is("}") {
                    return Err(self.peek().not("`,` or `}`"));
                }
            }
        } else {
            self.expect(";")?;
        }
        let pairs: Vec<_> = attributes
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
            .collect();
        let parent = parent.as_ref().map(|parent| parent.text.as_str());
        schema
            .declare(sort, &name.text, parent, &pairs)
            .map_err(|error| RuleError::new(name.at, error.to_string()))
    }

    fn rule(&mut self) -> Result<Rule, RuleError> {
        let mut rule = Rule::new("");
        rule.name = self.name("the name of a rule")?;
        self.expect("{")?;
        while !self.takes("}") {
            let token = self.next();
            match token.word() {
                Some("match") => self.items(&mut rule.pattern)?,
                Some("create") => self.items(&mut rule.create)?,
                Some("if") => rule.pattern.conditions.push(self.expression(0)?),
                Some("unless") => {
                    let mut pattern = Pattern::new();
                    self.items(&mut pattern)?;
                    if self.takes_word("if") {
                        pattern.conditions.push(self.expression(0)?);
                    }
                    rule.unless.push(pattern);
                }
                Some("delete") => loop {
                    rule.delete.push(self.name("the name of a vertex or edge")?);
                    if !self.takes(",") {
                        break;
                    }
                },
                Some("set") => loop {
                    rule.set.push(self.assignment()?);
                    if !self.takes(",") {
                        break;
                    }
                },
                Some("strict") => rule.strict = true,
                _ => {
                    return Err(token.not(
                        "`match`, `if`, `unless`, `delete`, `create`, `set`, `strict` or `}`",
                    ));
                }
            }
            self.expect(";")?;
        }
        Ok(rule)
    }

    fn assignment(&mut self) -> Result<Assignment, RuleError> {
        let owner = self.name("the name of a vertex or edge")?;
        self.expect(".")?;
        let attribute = self.name("the name of an attribute")?;
        self.expect("=")?;
        let value = self.expression(0)?;
        Ok(Assignment {
            owner,
            attribute,
            value,
        })
    }

    /// `a: T`, `a -[T]-> b`, `a <-[e: T]- b`, chains of these, with commas between.
    fn items(&mut self, pattern: &mut Pattern) -> Result<(), RuleError> {
        loop {
            let mut name = self.name("the name of a vertex")?;
            if self.takes(":") {
                let of = self.name("the type of the vertex")?;
                pattern.vertices.push(PatternVertex {
                    name: name.clone(),
                    of,
                });
            } else if !self.peek().is("-[") && !self.peek().is("<-[") {
                return Err(self
                    .peek()
                    .not("`:` with a type, or an edge such as `-[T]->`"));
            }
            while self.peek().is("-[") || self.peek().is("<-[") {
                let is_forward = self.next().is("-[");
                let first = self.name("the type of the edge")?;
                let (edge, of) = match self.takes(":") {
                    true => (Some(first), self.name("the type of the edge")?),
                    false => (None, first),
                };
                self.expect(if is_forward { "]->" } else { "]-" })?;
                let other = self.name("the name of a vertex")?;
                if self.takes(":") {
                    let of = self.name("the type of the vertex")?;
                    pattern.vertices.push(PatternVertex {
                        name: other.clone(),
                        of,
                    });
                }
                let (source, target) = match is_forward {
                    true => (name, other.clone()),
                    false => (other.clone(), name),
                };
                pattern.edges.push(PatternEdge {
                    name: edge,
                    of,
                    source,
                    target,
                });
                name = other;
            }
            if !self.takes(",") {
                return Ok(());
            }
        }
    }

    /// An expression, by the strength of its operators; `depth` is its nesting.
    fn expression(&mut self, depth: usize) -> Result<Expression, RuleError> {
        self.level(0, depth)
    }

    fn level(&mut self, level: usize, depth: usize) -> Result<Expression, RuleError> {
        use Binary::*;
        const LEVELS: [&[Binary]; 5] = [
            &[Or],
            &[And],
            &[Equal, Unequal, Less, AtMost, More, AtLeast],
            &[Add, Subtract],
            &[Multiply, Divide, Remainder],
        ];
        if level == LEVELS.len() {
            return self.operand(depth);
        }
        let mut left = self.level(level + 1, depth)?;
        let mut terms = 0;
        loop {
            let token = self.peek().clone();
            let sign = match &token.kind {
                TokenKind::Sign(sign) => sign,
                TokenKind::Word(word) => word.as_str(),
                _ => return Ok(left),
            };
            let Some(operation) = LEVELS[level].iter().find(|one| one.sign() == sign) else {
                return Ok(left);
            };
            terms += 1;
            if terms > DEPTH_MAX {
                let message = "the expression has too many terms: write several conditions";
                return Err(RuleError::new(token.at, message));
            }
            self.next();
            let right = self.level(level + 1, depth)?;
            left = Expression::Binary(*operation, Box::new(left), Box::new(right), token.at);
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Expression, RuleError> {
        let token = self.next();
        let at = token.at;
        if depth > DEPTH_MAX {
            let message = "the expression is nested too deeply: take it apart";
            return Err(RuleError::new(at, message));
        }
        let literal = |value| Ok(Expression::Literal(value, at));
        match &token.kind {
            TokenKind::Int(value) => literal(Value::Int(*value)),
            TokenKind::Float(value) => literal(Value::Float(*value)),
            TokenKind::Text(value) => literal(Value::Text(value.clone())),
            TokenKind::Word(word) if word == "true" => literal(Value::Bool(true)),
            TokenKind::Word(word) if word == "false" => literal(Value::Bool(false)),
            TokenKind::Word(word) if word == "not" => {
                let inner = self.level(2, depth + 1)?;
                Ok(Expression::Unary(Unary::Not, Box::new(inner), at))
            }
            TokenKind::Sign("-") => {
                let inner = self.operand(depth + 1)?;
                Ok(Expression::Unary(Unary::Minus, Box::new(inner), at))
            }
            TokenKind::Sign("(") => {
                let inner = self.expression(depth + 1)?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Word(text) | TokenKind::Quoted(text) => {
                let owner = Name {
                    text: text.clone(),
                    at,
                };
                self.expect(".")?;
                let attribute = self.name("the name of an attribute")?;
                Ok(Expression::Attribute(owner, attribute))
            }
            _ => Err(token.not("a value, an attribute such as `v.name`, or `(`")),
        }
    }
}
