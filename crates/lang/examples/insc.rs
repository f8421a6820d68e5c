fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let compiled = hearth_lang::compile::compile(&text, &path, &Default::default());
    for d in &compiled.diagnostics { eprintln!("{d:?}"); }
    if let Some(c) = compiled.c { println!("{c}"); }
}
