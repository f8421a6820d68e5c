//! Mistakes that the checker finds: names, types, calls, components, members, structure.

use super::Entry;
use crate::diagnostic::Code;

macro_rules! codes {
    ($($name:ident $code:literal $title:literal;)*) => {
        $(pub const $name: Code = Code($code);)*

        pub static ENTRIES: &[Entry] = &[$(
            Entry {
                code: $name,
                title: $title,
                story: include_str!(concat!("../../explain/", $code, ".md")),
            },
        )*];
    };
}

codes! {
    UNDECLARED "E0301" "a name is not declared";
    DECLARED_TWICE "E0302" "a name is declared twice in one scope";
    TYPE_FOR_VALUE "E0303" "a type is used as a value";
    VALUE_FOR_TYPE "E0304" "a value is used as a type";
    OWN_NAME "E0305" "a procedure or component names itself";
    DECLARED_LATER "E0306" "a name is used before it is declared";
    PROGRAM_VARIABLE "E0307" "a variable of the program is not visible here";
    GUARD_USES_ARM "E0308" "a guard uses what its arm receives";

    CONDITION "E0401" "a condition is not a bool";
    OPERANDS "E0402" "an operator does not fit its operands";
    ASSIGNMENT "E0403" "a value does not fit the variable";
    VALUE_UNUSED "E0404" "the value of a statement is not used";
    NO_VALUE "E0405" "a value is needed, but there is none";
    BRANCHES_DIFFER "E0406" "branches differ in type";
    NO_DEFAULT "E0407" "a form may yield no value, and its type has no default";
    SEND_PAYLOAD "E0408" "a value does not fit the channel it is sent on";
    WRONG_DIRECTION "E0409" "a channel is used against its direction";
    NOT_A_CHANNEL "E0410" "a channel is needed";
    LIKE_DIRECTIONS "E0411" "two channels of like direction cannot be connected";
    DIFFERENT_PAYLOADS "E0412" "channels of different payloads cannot be connected";
    REMOTE_END "E0413" "a remote channel needs a name and an address";
    STOP_TARGET "E0414" "only components can be stopped";
    NOT_A_BOX "E0415" "only a box can be projected";
    PROC_IN_BOX "E0416" "a procedure cannot be in a box";
    LOOP_BOUND "E0417" "a loop counts in integers";
    CASE_LABEL "E0418" "a case can never match";
    RETURN_TYPE "E0419" "a returned value does not fit the result";
    ARRAY_INITIALISER "E0420" "an initial value does not fit the array";
    INDEX_TYPE "E0421" "an index is not a whole number";

    ARGUMENT_COUNT "E0501" "too few or too many arguments";
    ARGUMENT "E0502" "an argument does not fit";
    NO_CONSTRUCTOR_FITS "E0503" "no constructor takes these arguments";
    NOT_A_PROCEDURE "E0504" "only procedures can be called";
    NOT_MAKEABLE "E0505" "`new` creates components, structs, arrays and channels";
    PROC_LEAVES "E0506" "a procedure that uses members leaves its component";
    FORWARD_MISSING "E0507" "a procedure called forward is never declared";

    NOT_AN_INTERFACE "E0601" "`presents` needs an interface";
    DUPLICATE_CHANNEL "E0602" "a channel name occurs twice";
    SAME_CONSTRUCTOR "E0603" "two constructors take the same types";

    NO_FIELD "E0701" "no such field";
    NO_CHANNEL "E0702" "no such channel";
    NO_MEMBERS "E0703" "a value has neither fields nor channels";
    NOT_AN_ARRAY "E0704" "only arrays can be indexed";
    NO_LENGTH "E0705" "only arrays and strings have a length";

    STRUCT_IN_STRUCT "E0801" "a struct holds a struct";
    ARRAY_LENGTH "E0802" "the length of an array is not positive";
    RETURN_OUTSIDE "E0803" "`return` outside a procedure";
    NO_RETURN "E0804" "a procedure with a result has no `return`";
    RETURN_VALUE "E0805" "`return` does not agree with the heading";
    THROW_OUTSIDE "E0806" "`throw` where no handler can be reached";
    NOT_AN_EXCEPTION "E0807" "not an exception";
    NOT_ASSIGNABLE "E0808" "only variables can be assigned to";
    STOP_AT_PROGRAM_LEVEL "E0809" "`stop` without target at program level";
    BESIDE "E0810" "`beside` before what is not proved to be independent";

    COMMUNICATION_IN_CONSTRUCTOR "W0901" "a constructor communicates";
    CALL_IN_CONSTRUCTOR "W0902" "a constructor calls a procedure";
    STOP_IN_CONSTRUCTOR "W0903" "a constructor stops a component";
    NEVER_RUNS "W0904" "code that never runs";
}
