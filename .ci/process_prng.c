/* The one function of Windows that Rust's standard library needs and Wine 8 does not have. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) int WINAPI ProcessPrng(unsigned char *buffer, size_t length) {
  return SystemFunction036(buffer, (ULONG)length);
}
