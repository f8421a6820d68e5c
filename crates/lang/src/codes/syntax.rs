//! Mistakes of spelling and grammar: E01xx and E02xx, and the warning about a surplus brace.

use super::Entry;
use crate::diagnostic::Code;

macro_rules! entries {
    ($($constant:ident $code:literal $title:literal)*) => {
        $(
            #[doc = $title]
            pub const $constant: Code = Code($code);
        )*

        pub static ENTRIES: &[Entry] = &[
            $(Entry {
                code: $constant,
                title: $title,
                story: include_str!(concat!("../../explain/", $code, ".md")),
            },)*
        ];
    };
}

entries! {
    UNKNOWN_CHARACTER "E0101" "unknown character"
    BAD_NAME "E0102" "not a name"
    UNTERMINATED_COMMENT "E0103" "unterminated comment"
    UNTERMINATED_STRING "E0104" "unterminated string"
    BAD_ESCAPE "E0105" "unknown escape in a string"
    NUMBER_TOO_LARGE "E0106" "number too large"
    BYTE_TOO_LARGE "E0107" "byte over 255"
    MALFORMED_NUMBER "E0108" "malformed number"
    CHARACTER_LITERAL "E0109" "character literal"
    TEXT_TOO_LARGE "E0110" "text too large"

    MISSING_SEPARATOR "E0201" "missing line break or `;`"
    UNCLOSED "E0202" "missing closing bracket"
    STRAY_CLOSER "E0203" "closing bracket without an opening one"
    TEXT_AFTER_END "E0204" "text after a surplus `}`"
    EXPRESSION_EXPECTED "E0205" "expression expected"
    STATEMENT_EXPECTED "E0206" "statement expected"
    NAME_EXPECTED "E0207" "name expected"
    RESERVED_WORD "E0208" "reserved word used as a name"
    TYPE_EXPECTED "E0209" "type expected"
    WORD_EXPECTED "E0210" "missing word or mark"
    MISSING_THEN "E0211" "`if` without `then`"
    MISSING_DO "E0212" "`for` without `do`"
    MISSING_DEFAULT "E0213" "missing `default`"
    NO_ARMS "E0214" "`project` without arms"
    COMMA_BETWEEN_GROUPS "E0215" "comma between groups"
    TYPED_LOCAL "E0216" "variable declared with a type"
    OPERATOR_BEGINS_LINE "E0217" "operator at the beginning of a line"
    FOREIGN_OPERATOR "E0218" "operator from another language"
    FOREIGN_WORD "E0219" "unknown word"
    DECLARATION_AFTER_STATEMENT "E0220" "declaration after a statement"
    PARTS_OUT_OF_ORDER "E0221" "component parts out of order"
    SECOND_BEHAVIOUR "E0222" "second behaviour"
    INCOMPLETE_COMPONENT "E0223" "component without constructor or behaviour"
    MEMBER_WITHOUT_VALUE "E0224" "member without a value"
    STATEMENT_AMONG_MEMBERS "E0225" "statement among the members of a component"
    BAD_PRESENTS "E0226" "missing or unnamed interface"
    DECLARATION_IN_BODY "E0227" "procedure or component declared in a body"
    NOT_A_PLACE "E0228" "not a variable, field or element"
    EQUALS_FOR_ASSIGN "E0229" "`=` where `:=` is meant"
    TOO_DEEP "E0230" "nested too deeply"
    RETURN_WITH_VALUE "E0231" "value returned by a procedure without result"
    BAD_STEP "E0232" "bad step of a `for`"
    LENGTH_NO_LITERAL "E0233" "bad array length"
    TRY_WITHOUT_HANDLER "E0234" "`try` without `except`"
    SEVERAL_STATEMENTS_IN_ARM "E0235" "several statements in an arm"
    NEEDS_BRACES "E0236" "statement needs braces here"
    STRAY_WORD "E0237" "word without its beginning"
    NEEDS_PARENTHESES "E0238" "operand needs parentheses"
    BAD_CREATION "E0239" "malformed `new`"
    BAD_GROUP "E0240" "malformed parameter, field or channel"
    PART_OUTSIDE_COMPONENT "E0241" "constructor or behaviour outside a component"

    SURPLUS_BRACE "W0900" "surplus `}` at the end"
}
