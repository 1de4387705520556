// This file makes the compiler accept the bodyless functions of
// pinned_unsafe.go, which are linked to the runtime's.
