package pieces_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/pieces"
)

// blobs are blobs in memory.
type blobs struct {
	of    map[string][]byte
	order []string
	fail  int // PutBlob fails after so many blobs; 0: never
}

func (b *blobs) PutBlob(_ context.Context, _ string, data []byte) (string, error) {
	if b.fail > 0 && len(b.order) >= b.fail {
		return "", tenon.Errorf(tenon.CodeStore, "the disk is full")
	}
	d := store.Digest(data)
	b.of[d], b.order = bytes.Clone(data), append(b.order, d)
	return d, nil
}

func (b *blobs) Blob(_ context.Context, digest string) ([]byte, error) {
	data, ok := b.of[digest]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %s", digest)
	}
	return data, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// TestRP20_Pieces holds that data comes back whole and at any place, and that its manifest is stored last.
func TestRP20_Pieces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		size   int
		pieces int
	}{{"nothing", 0, 0}, {"a byte", 1, 1}, {"a piece", pieces.Size, 1}, {"a piece and a byte", pieces.Size + 1, 2},
		{"three pieces", 2*pieces.Size + 5, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			data, b := random(tt.size), &blobs{of: map[string][]byte{}}
			m, err := pieces.Describe(t.Context(), bytes.NewReader(data), int64(tt.size))
			if err != nil {
				t.Fatal(err)
			}
			if m.Digest != store.Digest(data) || len(m.Pieces) != tt.pieces || len(b.of) != 0 {
				t.Fatalf("%d pieces, %d blobs, digest %s", len(m.Pieces), len(b.of), m.Digest)
			}
			if err := m.Put(t.Context(), b, "run", bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if last := b.order[len(b.order)-1]; last != m.ID() || len(b.order) != tt.pieces+1 {
				t.Errorf("the last of %d blobs is %s", len(b.order), last)
			}
			in, err := pieces.Open(t.Context(), b, m.ID())
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d of %d bytes, %v", len(got), tt.size, err)
			}
			for at := int64(0); at < int64(tt.size); at += pieces.Size - 3 { // across borders, and backwards
				for _, from := range []int64{at, int64(tt.size) - at - 1} {
					part := make([]byte, 10)
					n, err := in.ReadAt(part, from)
					if want := data[from:min(int64(tt.size), from+10)]; !bytes.Equal(part[:n], want) || err != nil && err != io.EOF {
						t.Errorf("at %d: %d bytes, %v", from, n, err)
					}
				}
			}
		})
	}
}

// TestRP20_PiecesBroken holds that half of the data cannot be opened, and that changed bytes are found.
func TestRP20_PiecesBroken(t *testing.T) {
	data := random(2*pieces.Size + 5)
	m, err := pieces.Describe(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	table := tenon.Table{Name: "sales", Bytes: int64(len(data)), Pieces: m.ID()}
	t.Run("a full disk", func(t *testing.T) {
		b := &blobs{of: map[string][]byte{}, fail: 2}
		if err := m.Put(t.Context(), b, "run", bytes.NewReader(data)); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("%v", err)
		}
		_, err := pieces.OpenTable(t.Context(), b, table)
		if tenon.ErrorCode(err) != tenon.CodeNotFound || !strings.Contains(err.Error(), "the rows of table 'sales' (17 MiB) are not here") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a file that changes", func(t *testing.T) {
		other := bytes.Clone(data)
		other[pieces.Size]++
		err := m.Put(t.Context(), &blobs{of: map[string][]byte{}}, "run", bytes.NewReader(other))
		if tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "changed while it was stored") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a missing piece", func(t *testing.T) {
		b := &blobs{of: map[string][]byte{}}
		if err := m.Put(t.Context(), b, "run", bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		delete(b.of, m.Pieces[1])
		in, err := pieces.OpenTable(t.Context(), b, table)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, in); n != pieces.Size || tenon.ErrorCode(err) != tenon.CodeNotFound {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	for name, text := range map[string]string{"no JSON": "x", "no size": `{"bytes":5}`, "a wrong number of pieces": `{"bytes":5,"size":5,"pieces":[]}`,
		"a large piece": `{"bytes":5,"size":99999999999,"pieces":["a"]}`, "less than nothing": `{"bytes":-1,"size":5}`} {
		t.Run(name, func(t *testing.T) {
			b := &blobs{of: map[string][]byte{}}
			id, _ := b.PutBlob(t.Context(), "run", []byte(text))
			if _, err := pieces.Open(t.Context(), b, id); tenon.ErrorCode(err) != tenon.CodeStore {
				t.Errorf("%v", err)
			}
		})
	}
}
