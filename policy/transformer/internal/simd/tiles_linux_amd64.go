package simd

import "syscall"

// permitTiles asks the kernel for the matrix unit's registers, which it hands out on demand only (Linux 5.16 and later,
// Documentation/arch/x86/xstate.rst). They are used within one assembly function at a time, which nothing but a signal
// interrupts, and released at its end.
func permitTiles() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
