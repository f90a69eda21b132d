package host

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/wholefile"
	"github.com/tenonhq/tenon/model"
)

// The bounds of kept embeddings, and the pause after a failure.
const (
	maxVectors        = 20_000
	maxVectorNumbers  = 16 << 20 // numbers in all vectors, four bytes each
	maxEmbeddingsTime = time.Minute
	embeddingsPause   = 30 * time.Second
)

// vectorKey identifies a vector: the digest of the model and the text.
type vectorKey [16]byte

// meanings keeps the embeddings of tools, in memory and in a file of the state folder.
type meanings struct {
	turn    chan struct{} // holds one value while nobody uses the fields below
	open    *model.Embedder
	vectors map[vectorKey][]float32
	numbers int
	paused  time.Time // no request is sent before this time
}

func newMeanings() *meanings {
	m := &meanings{turn: make(chan struct{}, 1), vectors: map[vectorKey][]float32{}}
	m.turn <- struct{}{}
	return m
}

// SearchTools finds tools by words, and by their meaning if tool_search.embeddings names a model. If that model does
// not answer in time, a warning is logged and words alone decide. Recordings and replays use words alone.
func SearchTools(ctx context.Context, h *Host, s *catalog.Snapshot, query string, k int) []catalog.Hit {
	name := h.config.ToolSearch.Embeddings
	if name == "" || h.cfg.Untrusted || h.cassette.recorder != nil || h.cassette.player != nil || query == "" {
		return s.Index().Search(query, k)
	}
	wait := min(h.config.ToolSearch.WithDefaults().EmbeddingsTimeout, maxEmbeddingsTime)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	vector, of, err := h.embed(ctx, s.Tools(), query)
	if err != nil {
		h.log.Warn("tool search uses words only: the embeddings of tool_search.embeddings are not available",
			"model", name, "error", h.redactor.Text(err.Error()))
		return s.Index().Search(query, k)
	}
	return s.Index().SearchWith(query, vector, of, k)
}

// embed returns the vector of a query, and the vectors of tools. Errors: errors of models, timeout.
func (h *Host) embed(ctx context.Context, tools []*tenon.Tool, query string) ([]float32,
	func(*tenon.Tool) []float32, error) {
	m := h.meanings
	select {
	case <-m.turn:
	case <-ctx.Done():
		return nil, nil, tenon.Errorf(tenon.CodeTimeout, "another search still waits for them")
	}
	defer func() { m.turn <- struct{}{} }()
	if time.Now().Before(m.paused) {
		return nil, nil, tenon.Errorf(tenon.CodeUnreachable, "the last request was not answered; the next one is made "+
			"after %s", embeddingsPause)
	}
	if err := h.openEmbedder(ctx); err != nil {
		return nil, nil, err
	}
	maker := m.open.Maker()
	keys := make(map[*tenon.Tool]vectorKey, len(tools))
	missing := []string{}
	missingKeys := []vectorKey{}
	seen := map[vectorKey]bool{}
	for _, t := range tools[:min(len(tools), maxVectors/2)] {
		text := h.redactor.Text(catalog.MeaningText(t))
		key := keyOf(maker, text)
		keys[t] = key
		if m.vectors[key] == nil && !seen[key] {
			seen[key] = true
			missing, missingKeys = append(missing, text), append(missingKeys, key)
		}
	}
	found, err := m.open.Embed(ctx, []string{h.redactor.Text(tenon.Shorten(query, 2000))})
	if err == nil {
		err = m.fetch(ctx, missing, missingKeys)
	}
	if len(missing) > 0 {
		m.save(h.vectorFile(maker), h.seal)
	}
	if err != nil {
		if ctx.Err() == nil || tenon.ErrorCode(err) != tenon.CodeTimeout {
			m.paused = time.Now().Add(embeddingsPause)
		}
		return nil, nil, err
	}
	kept := make(map[*tenon.Tool][]float32, len(keys))
	for t, key := range keys {
		kept[t] = m.vectors[key]
	}
	return found[0], func(t *tenon.Tool) []float32 { return kept[t] }, nil
}

// openEmbedder opens the configured model, and reads the kept vectors, once.
func (h *Host) openEmbedder(ctx context.Context) error {
	m := h.meanings
	if m.open != nil {
		return nil
	}
	c, err := h.models.config(ctx, h.config.ToolSearch.Embeddings)
	if err != nil {
		return err
	}
	h.redactor.Add(c.APIKey)
	if m.open, err = model.NewEmbedder(c, model.Env{}); err != nil {
		m.open = nil
		return err
	}
	m.load(h.vectorFile(m.open.Maker()), h.seal)
	return nil
}

func (h *Host) seal(parts ...[]byte) []byte { return h.serverPool.key.Load().Listing(parts...) }

// vectorFile is the file of a model's vectors.
func (h *Host) vectorFile(maker string) string {
	sum := sha256.Sum256([]byte(maker))
	return filepath.Join(h.cfg.serversPath(), "embeddings-"+hex.EncodeToString(sum[:8])+".vectors")
}

func keyOf(maker, text string) (k vectorKey) {
	sum := sha256.Sum256([]byte(maker + "\x00" + text))
	copy(k[:], sum[:])
	return k
}

// fetch asks for the vectors of texts, in parts. It keeps the parts that arrived before an error.
func (m *meanings) fetch(ctx context.Context, texts []string, keys []vectorKey) error {
	for from := 0; from < len(texts); from += model.MaxEmbedded {
		to := min(from+model.MaxEmbedded, len(texts))
		vectors, err := m.open.Embed(ctx, texts[from:to])
		if err != nil {
			if ctx.Err() != nil {
				return tenon.Errorf(tenon.CodeTimeout, "%d of %d new tools have embeddings so far; the next "+
					"search asks for the others", from, len(texts))
			}
			return err
		}
		for i, v := range vectors {
			m.put(keys[from+i], v)
		}
	}
	return nil
}

// put keeps a vector. If there are too many, it drops all others, and the next search requests the vectors of its
// tools again.
func (m *meanings) put(k vectorKey, v []float32) {
	if len(m.vectors) >= maxVectors || m.numbers+len(v) > maxVectorNumbers {
		clear(m.vectors)
		m.numbers = 0
	}
	m.vectors[k] = v
	m.numbers += len(v)
}

// vectorHead is the first line of a file of vectors.
type vectorHead struct {
	Width int    `json:"width"` // numbers of each vector
	MAC   []byte `json:"mac,omitempty"`
}

// save writes the vectors. Without the file, they are asked for again.
func (m *meanings) save(path string, seal func(...[]byte) []byte) {
	width := 0
	var body []byte
	for k, v := range m.vectors {
		if width == 0 {
			width = len(v)
		}
		if len(v) != width {
			continue
		}
		body = append(body, k[:]...)
		for _, x := range v {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
		}
	}
	head, err := json.Marshal(vectorHead{width, seal(body)})
	if err != nil || width == 0 || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = wholefile.Write(path, append(append(head, '\n'), body...), 0o600)
}

// load reads vectors that save wrote. A file that somebody else wrote is not used.
func (m *meanings) load(path string, seal func(...[]byte) []byte) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 4*maxVectorNumbers+maxVectors*32 {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	line, body, _ := bytes.Cut(b, []byte("\n"))
	var head vectorHead
	size := 0
	if json.Unmarshal(line, &head) != nil || head.Width < 1 || head.Width > maxVectorNumbers {
		return
	}
	if want := seal(body); want != nil && !hmac.Equal(want, head.MAC) {
		return
	}
	for size = 16 + 4*head.Width; len(body) >= size; body = body[size:] {
		v := make([]float32, head.Width)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[16+4*i:]))
		}
		m.put(vectorKey(body[:16]), v)
	}
}
