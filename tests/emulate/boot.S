/*
 * The whole firmware of the emulated machine: a 64 KiB ROM that goes from the
 * reset vector straight into a Linux kernel which Bochs has already put in RAM.
 *
 * Why not a BIOS and a boot loader: nothing here needs their services, and
 * reading a compressed kernel from an emulated CD and unpacking it costs more
 * emulated instructions than all of the rest of the boot.
 *
 * The addresses below must match those in bochs-run.
 */
    .set IMAGE,       0x100000        /* struct boot_params comes first */
    .set PAGE_TABLES, IMAGE + 0x2000  /* PML4 first; identity map of 4 GiB */
    .set ENTRY_CELL,  IMAGE + 0x8000  /* 8 bytes: entry point of the kernel */
    .set END_CELL,    IMAGE + 0x8008  /* 8 bytes: where the image ends */
    .set TOUCH_STEP,  0x10000         /* no larger than a block of Bochs */
    .set ROM_BASE,    0xf0000         /* where the ROM shows below 1 MiB */

    .text
    .code16
rom:
real_mode:
    cli
    cld
    /* CS still has the base that reset gave it, so the GDT is reached via CS. */
    lgdtl   %cs:(gdt_pointer - rom)
    movl    %cr0, %eax
    orl     $1, %eax
    movl    %eax, %cr0
    ljmpl   $0x20, $(ROM_BASE + protected_mode - rom)

    .code32
protected_mode:
    movw    $0x18, %ax
    movw    %ax, %ds
    movw    %ax, %es
    movw    %ax, %ss

    /* Bochs reads the RAM image into one run of host memory, but hands out
       that memory to the guest in blocks of 128 KiB in the order in which the
       guest first touches them. So touch the whole image in order before
       anything else, which also is why there can only be one image, and why it
       starts above 1 MiB: the video memory below takes no block. */
    movl    $IMAGE, %esi
    movl    END_CELL, %edi
touch:
    movb    (%esi), %al
    addl    $TOUCH_STEP, %esi
    cmpl    %edi, %esi
    jb      touch

    /* Memory type write-back everywhere, as a BIOS would leave it: otherwise
       the kernel may throw away the RAM that no MTRR calls cacheable. */
    movl    $0x2ff, %ecx
    movl    $0xc06, %eax
    xorl    %edx, %edx
    wrmsr

    movl    %cr4, %eax
    orl     $0x20, %eax                 /* PAE */
    movl    %eax, %cr4
    movl    $PAGE_TABLES, %eax
    movl    %eax, %cr3
    movl    $0xc0000080, %ecx           /* EFER */
    rdmsr
    orl     $0x100, %eax                /* LME */
    wrmsr
    movl    $0x80000001, %eax           /* PG, PE; the caches on */
    movl    %eax, %cr0
    ljmpl   $0x10, $(ROM_BASE + long_mode - rom)

    .code64
long_mode:
    movl    $IMAGE, %esi          /* what the 64-bit boot protocol asks */
    xorl    %ebp, %ebp
    xorl    %edi, %edi
    xorl    %ebx, %ebx
    movl    $ENTRY_CELL, %eax
    jmp     *(%rax)

    .balign 8
gdt:                                    /* 0x10 and 0x18 are Linux's choice */
    .quad   0
    .quad   0
    .quad   0x00af9b000000ffff          /* 0x10: code, 64 bits */
    .quad   0x00cf93000000ffff          /* 0x18: data, flat */
    .quad   0x00cf9b000000ffff          /* 0x20: code, 32 bits, flat */
gdt_end:
gdt_pointer:
    .word   gdt_end - gdt - 1
    .long   ROM_BASE + gdt - rom

    .org    0xfff0
    .code16
reset_vector:
    jmp     real_mode
    .org    0x10000
