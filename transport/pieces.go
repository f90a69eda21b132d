package transport

import "io"

// pieces collects a message of unknown size. It never copies collected data when more arrives, so a message
// costs at most twice its size. Growing one slice would leave several times that to the garbage collector.
type pieces struct {
	full [][]byte
	last []byte
	size int
}

const maxPiece = 1 << 20

func (p *pieces) add(b []byte) {
	p.size += len(b)
	for len(b) > 0 {
		if len(p.last) == cap(p.last) {
			if p.last != nil {
				p.full = append(p.full, p.last)
			}
			p.last = make([]byte, 0, max(len(b), min(2*cap(p.last), maxPiece)))
		}
		n := min(len(b), cap(p.last)-len(p.last))
		p.last = append(p.last, b[:n]...)
		b = b[n:]
	}
}

// bytes returns the message as one slice, which belongs to the caller.
func (p *pieces) bytes() []byte {
	if len(p.full) == 0 {
		return p.last
	}
	all := make([]byte, 0, p.size)
	for _, b := range p.full {
		all = append(all, b...)
	}
	return append(all, p.last...)
}

// prefix returns a copy of the first bytes.
func (p *pieces) prefix() []byte {
	first := p.last
	if len(p.full) > 0 {
		first = p.full[0]
	}
	return append([]byte(nil), first[:min(len(first), prefixSize)]...)
}

// readUpTo reads a message of at most max bytes. For a longer message it reports over and returns only the
// start.
func readUpTo(r io.Reader, max int) (b []byte, over bool, err error) {
	var p pieces
	buf := make([]byte, min(readSize, max+1))
	for {
		n, err := r.Read(buf)
		p.add(buf[:n])
		switch {
		case p.size > max:
			return p.prefix(), true, nil
		case err == io.EOF:
			return p.bytes(), false, nil
		case err != nil:
			return nil, false, err
		}
	}
}
