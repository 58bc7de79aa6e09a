package transformer

import (
	"bytes"
	"fmt"
	"runtime"
)

// mapped is a file in memory. Where the system can map files, its pages are read when they are asked for, and given up when
// memory is short; the file must stay as it is. It is unmapped when nothing refers to it any more.
type mapped struct{ data []byte }

func openMapped(path string) (*mapped, error) {
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f := &mapped{data}
	runtime.AddCleanup(f, func(unmap func() error) { _ = unmap() }, unmap) // of a mapping that was made, it cannot fail
	return f, nil
}

// numbers are those of a tensor, as they lie in a file.
type numbers struct {
	file       *mapped
	dtype      string
	first, end int // bytes of the file
}

// openTensors maps a file of tensors and returns all that are in it. It checks the header, and that the file ends where
// the last tensor does.
func openTensors(path string) (map[string]entry, map[string]numbers, error) {
	f, err := openMapped(path)
	if err != nil {
		return nil, nil, err
	}
	r := bytes.NewReader(f.data)
	entries, _, err := readEntries(r)
	if err != nil {
		return nil, nil, err
	}
	at, size := int64(len(f.data)-r.Len()), int64(0)
	all := make(map[string]numbers, len(entries))
	for name, e := range entries {
		size = max(size, e.Offsets[1])
		all[name] = numbers{f, e.DType, int(at + e.Offsets[0]), int(at + e.Offsets[1])}
	}
	if size != int64(r.Len()) {
		return nil, nil, fmt.Errorf("its tensors take %d bytes, %d follow the header (is the download complete?)", size, r.Len())
	}
	return entries, all, nil
}

// read sets dst to the numbers from number at on.
func (v numbers) read(dst []float32, at int) {
	decode(dst, v.dtype, v.file.data[v.first+at*int(numberSizes[v.dtype]):v.end])
	runtime.KeepAlive(v.file)
}

// check reports a number that is not finite.
func (v numbers) check() error {
	size := int(numberSizes[v.dtype])
	var part [1 << 12]float32
	for at, n := 0, (v.end-v.first)/size; at < n; at += len(part) {
		some := part[:min(len(part), n-at)]
		v.read(some, at)
		if err := finite(some); err != nil {
			return err
		}
	}
	return nil
}
