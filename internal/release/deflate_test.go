package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// largeEntries are entries of which two are large: one between smaller ones, and one at the end.
func largeEntries() []entry {
	r := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for text.Len() < largeText+1000 {
		fmt.Fprintf(&text, "%d tools of %x;", r.IntN(100), r.Uint32())
	}
	return []entry{{"a", []byte("small"), 0o644}, {"b", text.Bytes(), 0o755}, {"c", bytes.Repeat([]byte("c"), 5000), 0o644},
		{"d", nil, 0o644}, {"e", text.Bytes()[:largeText], 0o755}}
}

// TestREL_deflated packs large texts, which are compressed once, with small ones, and reads them again. The bytes do not
// depend on what was compressed before.
func TestREL_deflated(t *testing.T) {
	shared := &deflated{}
	for _, tt := range []struct {
		name string
		pack func(packaging, []entry) ([]byte, error)
		read func([]byte) (map[string][]byte, error)
	}{
		{"tar", func(p packaging, all []entry) ([]byte, error) { return p.tarball("", all) }, untar},
		{"zip", packaging.zipped, unzip},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries := largeEntries()
			packed, err := tt.pack(packaging{made: time.Unix(1e9, 0), texts: shared}, slices.Clone(entries))
			if err != nil {
				t.Fatal(err)
			}
			alone, err := tt.pack(packaging{made: time.Unix(1e9, 0)}, slices.Clone(entries))
			if err != nil || !bytes.Equal(packed, alone) {
				t.Errorf("other bytes without texts that were compressed before: %v", err)
			}
			got, err := tt.read(packed)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !bytes.Equal(got[e.name], e.text) {
					t.Errorf("%s: %d bytes, want the %d that were packed", e.name, len(got[e.name]), len(e.text))
				}
			}
			if len(got) != len(entries) || len(packed) > largeText {
				t.Errorf("%d entries in %d bytes", len(got), len(packed))
			}
		})
	}
	if len(shared.texts) != 2 {
		t.Errorf("%d texts were compressed for all packages, want 2", len(shared.texts))
	}
}

func untar(packed []byte) (map[string][]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	gz.Multistream(false)
	files, r := map[string][]byte{}, tar.NewReader(gz)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, gz) // the checksum is at the end
			return files, err
		} else if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

func unzip(packed []byte) (map[string][]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		if files[f.Name], err = io.ReadAll(in); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// TestREL_twoAtOnce checks that two functions run at the same time and no more, and that none begins after an error.
func TestREL_twoAtOnce(t *testing.T) {
	var mu sync.Mutex
	running, most, begun := 0, 0, 0
	var both sync.WaitGroup
	both.Add(2)
	work := func(i int) error {
		mu.Lock()
		begun++
		running++
		most = max(most, running)
		mu.Unlock()
		if i < 2 { // ends only if the other one runs, too
			both.Done()
			both.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		running--
		if i == 5 || i == 6 {
			return fmt.Errorf("fault %d", i)
		}
		return nil
	}
	var todo []func() error
	for i := range 5 {
		todo = append(todo, func() error { return work(i) })
	}
	if err := twoAtOnce(todo); err != nil || most != 2 || begun != 5 {
		t.Errorf("%v; %d at once, %d begun", err, most, begun)
	}
	for i := range 20 {
		todo = append(todo, func() error { return work(5 + i) })
	}
	begun = 0
	err := twoAtOnce(todo[5:])
	if err == nil || !strings.Contains(err.Error(), "fault 5") || begun > 2 {
		t.Errorf("%v; %d of 20 begun", err, begun)
	}
}
