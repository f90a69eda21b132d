package model

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// maxTokenProbs bounds the probabilities of an answer, alternatives included.
const maxTokenProbs = 200_000

// Logprobs collects the probabilities of the tokens of an answer. The zero value is ready to use.
type Logprobs struct {
	list    []tenon.TokenProb
	count   int
	omitted int
}

// Add adds the tokens of a list in OpenAI's form: choices[].logprobs.content, or the logprobs of an output_text.
func (l *Logprobs) Add(list []byte) {
	for x := range rawjson.Elements(list) {
		if l.full() {
			continue
		}
		t := tokenProb(x)
		for top := range rawjson.Elements(rawjson.Field(x, "top_logprobs")) {
			t.Top = append(t.Top, tokenProb(top))
		}
		l.take(t)
	}
}

// AddResult adds the tokens of Gemini's logprobsResult.
func (l *Logprobs) AddResult(result []byte) {
	var tops [][]byte
	for x := range rawjson.Elements(rawjson.Field(result, "topCandidates")) {
		tops = append(tops, rawjson.Field(x, "candidates"))
	}
	n := 0
	for x := range rawjson.Elements(rawjson.Field(result, "chosenCandidates")) {
		if l.full() {
			continue
		}
		t := tokenProb(x)
		if n < len(tops) {
			for top := range rawjson.Elements(tops[n]) {
				t.Top = append(t.Top, tokenProb(top))
			}
		}
		n++
		l.take(t)
	}
}

func (l *Logprobs) full() bool {
	if l.count < maxTokenProbs {
		return false
	}
	l.omitted++
	return true
}

func (l *Logprobs) take(t tenon.TokenProb) {
	l.list = append(l.list, t)
	l.count += 1 + len(t.Top)
}

// tokenProb reads one token. It keeps the bytes of the token only if they are not valid UTF-8, because otherwise they
// equal the text.
func tokenProb(x []byte) tenon.TokenProb {
	var t tenon.TokenProb
	var list []byte
	for k, v := range rawjson.Fields(x) {
		switch string(k) {
		case "token":
			t.Token = rawjson.String(v)
		case "logprob", "logProbability":
			t.Logprob, _ = strconv.ParseFloat(string(v), 64)
		case "bytes":
			list = v
		}
	}
	for b := range rawjson.Elements(list) {
		if n, ok := rawjson.Int(b); ok && n >= 0 && n < 256 {
			t.Bytes = append(t.Bytes, byte(n))
		}
	}
	if utf8.Valid(t.Bytes) {
		t.Bytes = nil
	}
	return t
}

// Take returns the tokens, and a warning if some were omitted.
func (l *Logprobs) Take() (list []tenon.TokenProb, warning string) {
	if l.omitted > 0 {
		warning = fmt.Sprintf("the probabilities of %d tokens are omitted: an answer has more than %d", l.omitted,
			maxTokenProbs)
	}
	return l.list, warning
}
