package transformer

import "skillmaster/policy/transformer/internal/simd"

// Kernel names the instruction set that the arithmetic uses here.
func Kernel() string { return simd.Kernel() }

// Peak makes one core do nothing but independent float32 multiply-adds, so many rounds of them, and returns how many
// operations that were: divided by the time it took, the most that the kernel could reach.
func Peak(iterations int) int { return simd.Peak(iterations) }

// KernelBF16 names what computes products in bfloat16 here: amx, avx512bf16, or generic where no instruction does.
func KernelBF16() string { return simd.KernelBF16() }

// PeakBF16 is Peak for products in bfloat16; 0 where there is nothing to measure.
func PeakBF16(iterations int) int { return simd.PeakBF16(iterations) }
