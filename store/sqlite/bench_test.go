package sqlite

import (
	"path/filepath"
	"testing"
)

// BenchmarkOpen opens a new store and an existing one.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	there := filepath.Join(dir, "there.db")
	for _, name := range []string{"new", "there"} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				path := there
				if name == "new" {
					path = filepath.Join(b.TempDir(), "tenon.db")
				}
				s, err := Open(b.Context(), Config{Path: path})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
