//! Tokens: small, in one array.

/// One token. Sixteen bytes, so that a token array streams through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The symbol of a name; the value of an integer, unsigned or byte literal.
    pub(crate) payload: u32,
    pub(crate) kind: Kind,
    /// A line break stands between the token before and this one, outside block comments.
    pub(crate) after_break: bool,
}

macro_rules! kinds {
    ($($class:ident { $($kind:ident = $text:literal,)* })*) => {
        /// The kind of a token. Keywords and marks carry their spelling.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Kind {
            Name,
            Integer,
            Unsigned,
            Byte,
            Real,
            String,
            /// A literal that stands for a value but is no literal of the language; reported.
            BadLiteral,
            /// A string without its closing quote: whatever followed it on its line is lost.
            OpenString,
            /// Characters that begin no token; reported.
            Unknown,
            End,
            $($($kind,)*)*
        }

        impl Kind {
            /// The spelling of a keyword or mark; a description of the other kinds.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    Kind::Name => "a name",
                    Kind::Integer => "an integer",
                    Kind::Unsigned => "an unsigned number",
                    Kind::Byte => "a byte",
                    Kind::Real => "a real number",
                    Kind::String | Kind::OpenString => "a string",
                    Kind::BadLiteral => "a literal",
                    Kind::Unknown => "an unknown character",
                    Kind::End => "the end of the file",
                    $($(Kind::$kind => $text,)*)*
                }
            }
        }

        kinds!(@keywords $($class { $($kind = $text,)* })*);
    };
    (@keywords Keywords { $($kind:ident = $text:literal,)* } $($rest:tt)*) => {
        impl Kind {
            /// The keyword a word spells, if it is reserved.
            pub(crate) fn keyword(word: &str) -> Option<Kind> {
                match word {
                    $($text => Some(Kind::$kind),)*
                    _ => None,
                }
            }

            pub(crate) fn is_keyword(self) -> bool {
                matches!(self, $(Kind::$kind)|*)
            }

            /// Every reserved word, for guessing what a misspelt one meant.
            pub(crate) const KEYWORDS: &[&str] = &[$($text),*];
        }
    };
}

kinds! {
    Keywords {
        Acknowledge = "acknowledge",
        After = "after",
        And = "and",
        Any = "any",
        As = "as",
        Behaviour = "behaviour",
        BoolType = "bool",
        ByteType = "byte",
        Case = "case",
        Component = "component",
        Connect = "connect",
        Constructor = "constructor",
        Default = "default",
        Disconnect = "disconnect",
        Do = "do",
        Else = "else",
        Enum = "enum",
        Except = "except",
        False = "false",
        For = "for",
        From = "from",
        If = "if",
        In = "in",
        IntegerType = "integer",
        Interface = "interface",
        Is = "is",
        Length = "length",
        New = "new",
        Of = "of",
        On = "on",
        Onto = "onto",
        Or = "or",
        Out = "out",
        Presents = "presents",
        Proc = "proc",
        Project = "project",
        Publish = "publish",
        RealType = "real",
        Receive = "receive",
        Return = "return",
        Select = "select",
        Send = "send",
        Stop = "stop",
        StringType = "string",
        Struct = "struct",
        Then = "then",
        Throw = "throw",
        To = "to",
        True = "true",
        Try = "try",
        Type = "type",
        UnsignedType = "unsigned",
        When = "when",
        With = "with",
    }
    Marks {
        Assign = ":=",
        Equals = "=",
        EqualEqual = "==",
        NotEqual = "!=",
        Less = "<",
        LessEqual = "<=",
        Greater = ">",
        GreaterEqual = ">=",
        Plus = "+",
        Minus = "-",
        Star = "*",
        Slash = "/",
        Percent = "%",
        Ampersand = "&",
        Bar = "|",
        Caret = "^",
        Tilde = "~",
        Bang = "!",
        Dot = ".",
        Dots = "..",
        Comma = ",",
        Semicolon = ";",
        Colon = ":",
        OpenParen = "(",
        CloseParen = ")",
        OpenBracket = "[",
        CloseBracket = "]",
        OpenBrace = "{",
        CloseBrace = "}",
    }
}

impl Kind {
    /// Whether an expression can begin with this token.
    pub(crate) fn begins_expression(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Name | Integer
                | Unsigned
                | Byte
                | Real
                | String
                | BadLiteral
                | OpenString
                | True
                | False
                | Any
                | New
                | OpenParen
                | OpenBrace
                | Plus
                | Minus
                | Bang
                | Tilde
        )
    }

    /// Whether a clause can begin with this token.
    pub(crate) fn begins_clause(self) -> bool {
        use Kind::*;
        self.begins_expression()
            || matches!(
                self,
                If | For
                    | Case
                    | Connect
                    | Disconnect
                    | Select
                    | Send
                    | Receive
                    | Acknowledge
                    | Publish
                    | Project
                    | Stop
                    | Return
                    | Throw
                    | Try
            )
    }

    /// Whether a statement certainly begins here when this token begins a line.
    pub(crate) fn begins_statement_surely(self) -> bool {
        use Kind::*;
        matches!(
            self,
            For | Connect
                | Disconnect
                | Select
                | Send
                | Receive
                | Acknowledge
                | Publish
                | Stop
                | Return
                | Throw
                | Try
                | Type
                | If
                | Case
                | Project
        ) || self.begins_declaration()
    }

    /// Keywords that only ever begin a declaration of a file or a component.
    pub(crate) fn begins_declaration(self) -> bool {
        matches!(
            self,
            Kind::Component | Kind::Constructor | Kind::Behaviour | Kind::Proc
        )
    }

    /// Whether a type can begin with this token.
    pub(crate) fn begins_type(self) -> bool {
        self == Kind::Name || self.is_type_keyword()
    }

    /// The type words that begin nothing but a type.
    pub(crate) fn is_type_keyword(self) -> bool {
        use Kind::*;
        matches!(
            self,
            IntegerType
                | UnsignedType
                | RealType
                | BoolType
                | ByteType
                | StringType
                | Any
                | In
                | Out
                | Interface
                | Struct
                | Enum
                | Proc
        )
    }
}
