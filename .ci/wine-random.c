/* bcryptprimitives.dll, which Wine 8 lacks. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T left) {
    while (left) {
        ULONG count = left > 0x10000000 ? 0x10000000 : (ULONG)left;
        if (!SystemFunction036(bytes, count)) {
            return FALSE;
        }
        bytes += count;
        left -= count;
    }
    return TRUE;
}
