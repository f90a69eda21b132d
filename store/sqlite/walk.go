package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
)

// SQLite reads a log (the -wal file) up to the first frame with a wrong checksum, and ignores the rest without an
// error. So a single flipped bit loses all later writes. The functions in this file read a log to find out whether
// committed frames follow such a break (https://sqlite.org/fileformat2.html, section 4).

const (
	walHeaderSize = 32
	walFrameSize  = 24 // before each page
	walMagic      = 0x377f0682
	walVersion    = 3007000
	storePageSize = 4096 // page size of all stores; used if the header of the log is damaged
)

// walLog is a log that was read.
type walLog struct {
	path   string
	page   int
	big    bool // byte order of the checksums
	header string
	head   [walHeaderSize]byte
	salts  []byte
	frames []walFrame
	// used is the number of frames that SQLite uses, usable the number of frames up to the last commit that is whole
	// except for damaged bits.
	used, usable int
	lost         int  // commits that SQLite ignores
	torn         bool // the last commit is incomplete
}

// walFrame describes a frame.
type walFrame struct {
	links  bool // its checksum is right: it follows from the previous frame's checksum and the contents
	sound  bool // the checksum of the next frame follows from its contents, so that only its own is damaged
	salted bool // it has the log's salts
	near   bool // it has the salts, except for one bit
	commit bool
}

// damaged describes the damage of a log, or "" if there is none.
func (l *walLog) damaged() string {
	switch {
	case l == nil:
		return ""
	case l.header != "":
		return fmt.Sprintf("%s, so SQLite ignores the log: %d writes", l.header, l.lost)
	case l.lost > 0:
		return fmt.Sprintf("frame %d is damaged, so SQLite ignores it and all later frames: %d writes", l.used+1,
			l.lost)
	case l.torn:
		return "the last write is incomplete and ignored: the machine stopped during it, or it is damaged"
	}
	return ""
}

// readLog reads the log at a path. It returns nil if there is none, or if it is empty. It may open and close the log
// of a store in use: unlike the store's file, the log has no locks.
func readLog(path string) (*walLog, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	l := &walLog{path: path}
	r := bufio.NewReaderSize(f, 1<<20)
	if _, err := io.ReadFull(r, l.head[:]); err != nil {
		return nil, cutOff(err)
	}
	if err := l.walk(r); err != nil {
		return nil, err
	}
	if len(l.frames) == 0 && l.header == "" {
		return nil, nil
	}
	l.judge()
	return l, nil
}

// cutOff returns nil for the end of a log within a frame: such a frame was never committed.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// sum continues a checksum over some bytes, a multiple of 8.
func (l *walLog) sum(sum [2]uint32, b []byte) [2]uint32 {
	var order binary.ByteOrder = binary.LittleEndian
	if l.big {
		order = binary.BigEndian
	}
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += order.Uint32(b) + sum[1]
		sum[1] += order.Uint32(b[4:]) + sum[0]
	}
	return sum
}

// readHead reads the header, and returns its checksum as it is stored and as it is computed.
func (l *walLog) readHead() (stored, computed [2]uint32) {
	magic := binary.BigEndian.Uint32(l.head[:])
	l.big = magic == walMagic|1
	l.page = int(binary.BigEndian.Uint32(l.head[8:]))
	l.salts = l.head[16:24]
	stored, computed = storedSum(l.head[24:]), l.sum([2]uint32{}, l.head[:24])
	if magic&^1 != walMagic || stored != computed || binary.BigEndian.Uint32(l.head[4:]) != walVersion ||
		l.page < 512 || l.page > 1<<16 || bits.OnesCount(uint(l.page)) != 1 {
		l.header = "its header is damaged"
		l.big = binary.NativeEndian.Uint16([]byte{0, 1}) == 1 // byte order of this machine, as in SQLite
		computed = l.sum([2]uint32{}, l.head[:24])
		l.page, l.salts = storePageSize, nil // the salts of the first frame are used
	}
	return stored, computed
}

func storedSum(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// walk reads the frames. It stops at frames with other salts, which an earlier use of the file has left.
func (l *walLog) walk(r io.Reader) error {
	stored, computed := l.readHead()
	b := make([]byte, walFrameSize+l.page)
	for {
		if _, err := io.ReadFull(r, b); err != nil {
			return cutOff(err)
		}
		if l.salts == nil {
			l.salts = bytes.Clone(b[8:16])
		}
		f := walFrame{commit: binary.BigEndian.Uint32(b[4:]) != 0}
		far := 0
		for i, s := range l.salts {
			far += bits.OnesCount8(s ^ b[8+i])
		}
		f.salted, f.near = far == 0, far == 1
		next := storedSum(b[16:])
		content := l.sum(l.sum(stored, b[:8]), b[walFrameSize:])
		f.links = content == next
		if !f.links && computed != stored { // the contents of the frame before are right, and its checksum is damaged
			content = l.sum(l.sum(computed, b[:8]), b[walFrameSize:])
			if f.links = content == next; f.links && len(l.frames) > 0 {
				l.frames[len(l.frames)-1].sound = true
			}
		}
		if !f.salted && !f.near {
			return nil
		}
		l.frames = append(l.frames, f)
		stored, computed = next, content
	}
}

// judge determines which frames SQLite uses, and which further ones are usable.
//
// If a frame after a break follows from the frame before it, both were written together, so the break is damage.
// Otherwise the break is the place where a process or the machine stopped. Frames after it may come from an earlier
// transaction that was never committed.
func (l *walLog) judge() {
	i := 0
	for ; i < len(l.frames) && l.header == "" && l.frames[i].links && l.frames[i].salted; i++ {
		if l.frames[i].commit {
			l.used = i + 1
		}
	}
	l.usable = l.used
	if i == len(l.frames) {
		return
	}
	first := l.frames[i]
	for j := i; j < len(l.frames); j++ {
		f := l.frames[j]
		if j > i && !f.links {
			break // after a second break, the frames do not belong to the log
		}
		if f.commit && (f.links || j > i) {
			l.usable = j + 1
			l.lost++
		}
	}
	if l.lost > 0 && first.commit && !first.links {
		l.lost++
	}
	l.torn = l.lost == 0 && first.commit && !first.links
}

// rewrite writes the usable frames with correct checksums, so that SQLite uses all of them. It corrects single
// flipped bits. It returns the number of the first frame with more damage, or 0 if there is none.
func (l *walLog) rewrite(w io.Writer) (damaged int, err error) {
	f, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	r := bufio.NewReaderSize(f, 1<<20)
	if _, err := r.Discard(walHeaderSize); err != nil {
		return 0, err
	}
	head := l.head
	binary.BigEndian.PutUint32(head[:], walMagic)
	if l.big {
		head[3] |= 1
	}
	binary.BigEndian.PutUint32(head[4:], walVersion)
	binary.BigEndian.PutUint32(head[8:], uint32(l.page))
	copy(head[16:24], l.salts)
	sum := l.sum([2]uint32{}, head[:24])
	putSum(head[24:], sum)
	if _, err := w.Write(head[:]); err != nil {
		return 0, err
	}
	b := make([]byte, walFrameSize+l.page)
	stored, computed := storedSum(l.head[24:]), l.sum([2]uint32{}, l.head[:24])
	for i := range l.usable {
		if _, err := io.ReadFull(r, b); err != nil {
			return damaged, err
		}
		next := storedSum(b[16:])
		if f := l.frames[i]; !f.links && !f.sound && !l.correct(b, stored) && !l.correct(b, computed) && damaged == 0 {
			damaged = i + 1
		}
		stored, computed = next, l.sum(l.sum(stored, b[:8]), b[walFrameSize:])
		copy(b[8:16], l.salts)
		if binary.BigEndian.Uint32(b) == 1 && l.page == storePageSize {
			fixHeader(b[walFrameSize:], 0)
		}
		sum = l.sum(l.sum(sum, b[:8]), b[walFrameSize:])
		putSum(b[16:], sum)
		if _, err := w.Write(b); err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}

// correct finds and flips the single bit of a frame whose change makes the checksum right. It returns false if there
// is no such bit, or more than one: the checksum does not distinguish the upper bits of words. A checksum is linear
// in each word of the frame: changing a word changes the sum by this change times a factor that depends on the word's
// position.
func (l *walLog) correct(b []byte, from [2]uint32) bool {
	var order binary.ByteOrder = binary.LittleEndian
	if l.big {
		order = binary.BigEndian
	}
	sum, stored := l.sum(l.sum(from, b[:8]), b[walFrameSize:]), storedSum(b[16:])
	found, place, value := 0, 0, uint32(0)
	factors := [2][2]uint32{{1, 1}, {0, 1}} // of the first and the second word of a pair
	for at := len(b) - 8; at >= 0; at -= 8 {
		if at == walFrameSize-8 {
			at = 0 // the salts and the checksum are between the page and what describes it
		}
		for i, f := range factors {
			word := order.Uint32(b[at+4*i:])
			for bit := range 32 {
				change := (word ^ 1<<bit) - word
				if change*f[0] == stored[0]-sum[0] && change*f[1] == stored[1]-sum[1] {
					found, place, value = found+1, at+4*i, word^1<<bit
				}
			}
			factors[i] = [2]uint32{f[0] + f[1], f[0] + 2*f[1]}
		}
	}
	if found != 1 {
		return false
	}
	order.PutUint32(b[place:], value)
	return true
}

func putSum(b []byte, sum [2]uint32) {
	binary.BigEndian.PutUint32(b, sum[0])
	binary.BigEndian.PutUint32(b[4:], sum[1])
}
