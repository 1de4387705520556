package house

import (
	"debug/elf"
	"fmt"
	"io"
)

// CheckStatic reports whether an ELF executable is statically linked: it asks
// for no interpreter and no shared library.
func CheckStatic(r io.ReaderAt) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("executable: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("dynamically linked: it has a %v segment", p.Type)
		}
	}
	return nil
}
