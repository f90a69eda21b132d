package forms

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// DigestPrefix is the prefix of the name of each blob.
const DigestPrefix = "sha256:"

// DigestName returns the name of a blob with a SHA-256 sum.
func DigestName(sum []byte) string { return DigestPrefix + hex.EncodeToString(sum) }

// DigestOf is the inverse of [DigestName].
func DigestOf(name string) (sum []byte, ok bool) {
	text, ok := strings.CutPrefix(name, DigestPrefix)
	sum, err := hex.DecodeString(text)
	return sum, ok && err == nil && len(sum) == sha256.Size
}

// ErrNoBlob returns the error for a text that is not a digest.
func ErrNoBlob(digest string) error {
	return tenon.Errorf(tenon.CodeNotFound, "no blob %q: a digest is sha256: and 64 hex digits", digest)
}

// CheckCharges checks the arguments of [store.Budgets.Reserve]. Errors: invalid.
func CheckCharges(run, id string, charges []store.Charge) error {
	if run == "" || id == "" || len(charges) == 0 {
		return tenon.Errorf(tenon.CodeInvalid, "store: a reservation needs a run, an id and a charge")
	}
	seen := make(map[string]bool, len(charges))
	for _, c := range charges {
		switch {
		case c.Key == "" || seen[c.Key]:
			return tenon.Errorf(tenon.CodeInvalid,
				"store: the reservation %s of run %s needs a key for each charge, none twice; got %q", id, run, c.Key)
		case c.Amount < 0 || c.Limit < 0:
			return tenon.Errorf(tenon.CodeInvalid,
				"store: the reservation %s of run %s has a negative amount or limit for %s", id, run, c.Key)
		}
		seen[c.Key] = true
	}
	return nil
}

// SettlesNow returns the amounts that settle an open reservation when its charges are reserved again as made. An older
// version may have ended between Reserve and Settle. Otherwise SettlesNow returns nil.
func SettlesNow(held []signed.Held, charges []store.Charge) []int64 {
	if len(held) != len(charges) || !held[0].Open {
		return nil
	}
	amounts := make([]int64, len(charges))
	for i, c := range charges {
		if !c.Made || c.Key != held[i].Key {
			return nil
		}
		amounts[i] = c.Amount
	}
	return amounts
}

// Admits reports whether a budget has room for a charge, by the rule of [store.Budgets].
func Admits(b *store.Balance, c store.Charge) bool {
	total := Plus(b.Used, b.Reserved)
	return c.Limit == 0 || total < c.Limit && (b.Reserved == 0 || Plus(total, c.Amount) <= c.Limit)
}

// Plus adds two amounts that are not negative. If the sum is too large, it returns the largest number.
func Plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// MaxTurns is the number of turns that are kept for a key. No rate needs earlier turns. The window of a rate cannot
// decide which turns are needed, because a key may have several rates.
const MaxTurns = 1000

// NextTurn returns the earliest time for a call, by the rule of [store.Rates]. turns is sorted.
func NextTurn(turns []time.Time, calls int, per time.Duration, now time.Time) time.Time {
	if len(turns) >= calls {
		if free := turns[len(turns)-calls].Add(per); free.After(now) {
			return free
		}
	}
	return now
}

// UnpackTurns reads the reserved turns in order. It omits turns after the time before, because they were reserved
// before the clock was set back.
func UnpackTurns(packed []byte, before time.Time) []time.Time {
	var turns []time.Time
	for ; len(packed) >= 8; packed = packed[8:] {
		if t := FromNanos(int64(binary.LittleEndian.Uint64(packed))); !t.After(before) {
			turns = append(turns, t)
		}
	}
	slices.SortFunc(turns, time.Time.Compare)
	return turns
}

// PackTurns writes the last [MaxTurns] turns, as times of 8 bytes.
func PackTurns(turns []time.Time) []byte {
	slices.SortFunc(turns, time.Time.Compare)
	turns = turns[max(0, len(turns)-MaxTurns):]
	packed := make([]byte, 0, 8*len(turns))
	for _, t := range turns {
		packed = binary.LittleEndian.AppendUint64(packed, uint64(Nanos(t)))
	}
	return packed
}

// CheckSessionGrant refuses an approval of a session without what identifies it. Errors: invalid.
func CheckSessionGrant(g *store.SessionGrant) error {
	if g.ID == "" || g.Session == "" || g.Key == "" || g.Principal == "" {
		return tenon.Errorf(tenon.CodeInvalid,
			"store: an approval of a session needs an id, a session, a key and a principal")
	}
	g.Foreign = false
	return nil
}
