package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// set is an instruction set.
type set struct {
	suffix string // of function names
	parts  int    // registers in a block of sixteen elements
}

var (
	avx512 = set{suffix: "AVX512", parts: 1}
	avx2   = set{suffix: "AVX2", parts: 2}
)

const (
	blockElements = 16
	blockBytes    = 4 * blockElements
)

func (s set) wide() bool { return s.parts == 1 }

// bytes is the size of a register.
func (s set) bytes() int { return blockBytes / s.parts }

func (s set) vector() reg.VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

func (s set) vectors(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = s.vector()
	}
	return v
}

// zero returns a register of zeros.
func (s set) zero() reg.VecVirtual {
	v := s.vector()
	if s.wide() {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

// parameter returns a float32 parameter in every element of a register.
func (s set) parameter(name string) reg.VecVirtual {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := s.vector()
	VBROADCASTSS(p.Addr, v)
	return v
}

// constant returns v in every element of an operand: a register where there are many, memory otherwise.
func (s set) constant(v float32) Op {
	if !s.wide() {
		return data(v)
	}
	return s.held(v)
}

// held is constant, always in a register.
func (s set) held(v float32) reg.VecVirtual {
	r := s.vector()
	if s.wide() {
		VBROADCASTSS(data(v), r)
	} else {
		VMOVUPS(data(v), r)
	}
	return r
}

var constants = map[uint32]Mem{}

// data returns eight copies of v in read-only memory.
func data(v float32) Mem {
	bits := math.Float32bits(v)
	if m, ok := constants[bits]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("constant_%08x", bits), attr.RODATA|attr.NOPTR)
	for i := range 8 {
		DATA(4*i, U32(bits))
	}
	constants[bits] = m
	return m
}

var edge *Mem

// masks returns sixteen words of ones followed by sixteen of zeros: a window on it masks the first elements of a block.
func masks() Mem {
	if edge == nil {
		m := GLOBL("edge", attr.RODATA|attr.NOPTR)
		for i := range 2 * blockElements {
			DATA(4*i, U32(math.MaxUint32*uint32(1-i/blockElements)))
		}
		edge = &m
	}
	return *edge
}
