//! Headers and cell values in other languages, in lower case. Tools write team files in English, but people and their
//! agents translate the headers.

pub(super) const NAME: &str = "\
    nombre, miembro, agente, nom, membre, prénom, mitglied, nome, membro, naam, lid, имя, участник, 姓名, 名字, 名称, 成员, \
    名前, メンバー, 이름, imię";

pub(super) const ROLE: &str = "\
    rol, rolle, rôle, função, papel, cargo, ruolo, fonction, funktion, puesto, función, роль, 角色, 职位, 职责, 役割, ロール, \
    역할, rola";

pub(super) const STATUS: &str = "estado, estatus, statut, stato, zustand, situação, статус, 状态, 状態, 상태";

pub(super) const CHARTER: &str = "charte, charta, carta, 章程, устав";

/// Words in headings of sections about the project.
pub(super) const PROJECT: &str =
    "projekt, proyecto, projet, progetto, projeto, contexto, kontext, проект, 项目, プロジェクト";

/// Last words of headings over rosters.
pub(super) const MEMBERS: &str =
    "miembros, mitglieder, membres, membros, membri, leden, equipo, équipe, equipe, 成员, 团队, メンバー";

pub(super) const RETIRED: &str = "\
    ruhestand, verlassen, parti, partie, retirado, retirada, jubilado, jubilada, retraité, retraitée, ausgeschieden, \
    ehemalig, aposentado, aposentada, ritirato, 退役, 已退役, 退休, 引退, 은퇴";

pub(super) const INACTIVE: &str = "\
    inactivo, inactiva, inactif, inaktiv, inativo, inativa, inattivo, pausiert, pausado, pausada, 非活跃, 停用, 暂停, 休止, \
    비활성";

pub(super) const ACTIVE: &str =
    "activo, activa, actif, aktiv, ativo, ativa, attivo, attiva, actief, 活跃, 稼働中, активен";

pub(super) const HUMAN: &str = "mensch, humano, humana, humain, umano, mens, человек";

/// Headers of routing tables over those who do the work.
pub(super) const AGENT: &str =
    "agente, responsable, responsável, responsabile, zuständig, verantwortlich, 负责人, 代理, 担当, 担当者, 담당자";

pub(super) const EXAMPLES: &str = "ejemplos, beispiele, exemples, exemplos, esempi, voorbeelden, 示例, 例, 예시";

/// Months that are not spelled as in English: Spanish, French, German, Portuguese, Italian, Dutch.
pub(super) const MONTHS: [&str; 12] = [
    "enero, janvier, januar, janeiro, gennaio, januari",
    "febrero, février, fevrier, februar, fevereiro, febbraio, februari",
    "marzo, mars, märz, maerz, março, maart",
    "abril, avril, aprile",
    "mayo, mai, maio, maggio, mei",
    "junio, juin, juni, junho, giugno",
    "julio, juillet, juli, julho, luglio",
    "agosto, août, aout, augustus",
    "septiembre, septembre, setembro, settembre",
    "octubre, octobre, oktober, outubro, ottobre",
    "noviembre, novembre, novembro",
    "diciembre, décembre, dezember, dezembro, dicembre",
];

/// Fields for the date of a decision.
pub(super) const DATE: &str = "fecha, datum, data, 日期, 日付";

/// Fields for the author of a decision.
pub(super) const AUTHOR: &str =
    "por, par, von, door, autor, autora, auteur, autore, autorin, entschieden von, 作者, 决策者";
