/* One function for each that torch-sys calls in C++. Its first call has libtorch loaded; each later one is a jump more than usual. */

/* Reached from a function that was never called before, with its entry in r11. Arguments are kept, wherever they are: it jumps to the real
   function as if that had been called. */
    .text
    .type first_call, @function
first_call:
    pushq %rbp
    movq %rsp, %rbp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    pushq %r11
    subq $128, %rsp
    movups %xmm0, 0(%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq %r11, %rdi
    call tch_resolve
    movups 0(%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    popq %r11
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rbp
    jmp *(%r11)

/* An entry is where the function is, at first the way to `first_call`, and its name. Sections of their own let the linker leave out what
   a program does not call. */
    .macro on_demand name
    .section .text.\name, "ax", @progbits
    .globl \name
    .type \name, @function
\name:
    jmp *entry_\name(%rip)
first_\name:
    leaq entry_\name(%rip), %r11
    jmp first_call
    .section .data.rel.\name, "aw", @progbits
    .balign 8
entry_\name:
    .quad first_\name, name_\name
    .section .rodata.\name, "a", @progbits
name_\name:
    .asciz "\name"
    .endm

    .section .note.GNU-stack, "", @progbits
